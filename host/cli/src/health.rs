//! Whether the program does what it should: for `GET /health`, and for the service manager (readiness and watchdog).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use serde_json::{json, Value};

/// A program that does not look after its boards for so long does not do what it should.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest work at the end, such as writing what waits for a slow disk, in which the watchdog is kept quiet.
const BUSY: Duration = Duration::from_secs(600);
/// Time that the service manager is asked for meanwhile, again and again: its limit for the end of a program may be shorter.
const MORE: Duration = Duration::from_secs(30);
/// How often it is kept quiet.
const TICK: Duration = Duration::from_millis(500);

struct Health {
    /// When the boards were looked after; `None`: the program is not ready yet.
    beat: Option<Instant>,
    notified: Option<Instant>,
    troubles: Vec<String>,
}

static HEALTH: Mutex<Health> = Mutex::new(Health { beat: None, notified: None, troubles: Vec::new() });

fn lock() -> MutexGuard<'static, Health> {
    HEALTH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All was looked after, and these things are wrong. The first call tells the service manager that the program is ready.
pub fn beat(troubles: Vec<String>) {
    let mut health = lock();
    let is_first = health.beat.replace(Instant::now()).is_none();
    let is_other = troubles != health.troubles;
    health.troubles = troubles;
    if health.notified.is_none_or(|notified| notified.elapsed() >= TICK) {
        health.notified = Some(Instant::now());
        // Without a service manager there is nobody to be told.
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    }
    if is_first {
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    }
    if is_first || is_other {
        let status = health.troubles.first().map_or("all is well", |trouble| trouble);
        let _ = sd_notify::notify(&[NotifyState::Status(status)]);
    }
}

/// Does work that takes long.
pub fn while_busy<T>(work: impl FnOnce() -> T) -> T {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let keep_quiet = move || {
            let begin = Instant::now();
            while begin.elapsed() < BUSY
                && is_done.recv_timeout(TICK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                let troubles = lock().troubles.clone();
                beat(troubles);
                let _ = sd_notify::notify(&[NotifyState::ExtendTimeoutUsec(MORE.as_micros() as u32)]);
            }
        };
        // Without it the work is done all the same.
        let _ = std::thread::Builder::new().name("busy".into()).spawn_scoped(scope, keep_quiet);
        let result = work();
        drop(done);
        result
    })
}

/// True if all is well, and what is wrong.
pub fn state() -> (bool, Value) {
    let health = lock();
    let seconds = health.beat.map(|beat| beat.elapsed());
    let mut troubles = health.troubles.clone();
    match seconds {
        None => troubles.push("it is not ready yet".into()),
        Some(silence) if silence > SILENCE => {
            troubles.push(format!("it has not looked after its boards for {} s", silence.as_secs()));
        }
        Some(_) => {}
    }
    let healthy = troubles.is_empty();
    (healthy, json!({ "healthy": healthy, "troubles": troubles, "version": env!("CARGO_PKG_VERSION") }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_program_is_healthy_while_it_looks_after_its_boards() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(state().1["troubles"][0], "it is not ready yet");
        beat(vec!["left: a sink has failed".into()]);
        assert_eq!((state().0, &state().1["troubles"][0]), (false, &"left: a sink has failed".into()));
        beat(Vec::new());
        assert!(state().0);
        let long_ago = Instant::now().checked_sub(2 * SILENCE).unwrap();
        lock().beat = Some(long_ago);
        assert!(state().1["troubles"][0].as_str().unwrap().starts_with("it has not looked after its boards for 20 s"));
        let manager = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        manager.set_nonblocking(true).unwrap();
        std::env::set_var("NOTIFY_SOCKET", folder.path().join("notify"));
        // Work at the end is not silence, and may take longer than the service manager's limit.
        assert!(while_busy(|| {
            std::thread::sleep(3 * TICK);
            state().0
        }));
        let mut message = [0; 256];
        let messages: Vec<_> =
            std::iter::from_fn(|| manager.recv(&mut message).ok().map(|n| message[..n].to_vec())).collect();
        for expected in ["WATCHDOG=1", "EXTEND_TIMEOUT_USEC=30000000"] {
            assert!(messages.iter().any(|message| message.starts_with(expected.as_bytes())), "{expected}");
        }
    }
}
