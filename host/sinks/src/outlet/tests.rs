use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

#[derive(Clone)]
struct Number(u64);

impl Item for Number {
    const UNIT: &'static str = "numbers";

    fn amount(&self) -> u64 {
        1
    }

    fn bytes(&self) -> u64 {
        8
    }
}

/// Writes what it is let to, and fails or panics where it is told.
struct Slow {
    go: mpsc::Receiver<()>,
    fail_at: Option<u64>,
    panics: bool,
    got: Arc<Mutex<Vec<u64>>>,
    ends: Arc<Mutex<Vec<End>>>,
}

impl Sink<Number> for Slow {
    fn write(&mut self, item: &Number) -> Result {
        let _ = self.go.recv();
        assert!(!(self.panics && self.fail_at == Some(item.0)), "at {}", item.0);
        if self.fail_at == Some(item.0) {
            return Err(io::Error::from(rustix::io::Errno::NOSPC).into());
        }
        self.got.lock().unwrap().push(item.0);
        Ok(())
    }

    fn finish(&mut self, end: End) -> Result {
        self.ends.lock().unwrap().push(end);
        Ok(())
    }

    fn intact(&self) -> u64 {
        self.got.lock().unwrap().len() as u64
    }

    fn files(&self) -> Option<&Parts> {
        None
    }
}

struct Seen {
    go: mpsc::Sender<()>,
    got: Arc<Mutex<Vec<u64>>>,
    ends: Arc<Mutex<Vec<End>>>,
}

fn outlet(policy: Policy, fail_at: Option<u64>, panics: bool) -> (Outlet<Number>, Seen) {
    let (sender, go) = mpsc::channel();
    let seen = Seen { go: sender, got: Arc::default(), ends: Arc::default() };
    let sink = Slow { go, fail_at, panics, got: seen.got.clone(), ends: seen.ends.clone() };
    let terms = Terms { policy, capacity: 4 * 8, durable: false, optional: false };
    (Outlet::start("slow", terms, None, Box::new(sink)).unwrap(), seen)
}

#[test]
fn a_slow_one_that_drops_holds_nobody_up() {
    let ((slow, seen), (fast, all)) = (outlet(Policy::Drop, None, false), outlet(Policy::Wait, None, false));
    let mut outlets = Outlets::new(vec![slow, fast]);
    drop(all.go); // as fast as it can
    (0..100).for_each(|i| assert!(outlets.offer(&Number(i))));
    drop(seen.go);
    outlets.finish(true).unwrap();
    assert_eq!(*all.got.lock().unwrap(), (0..100).collect::<Vec<_>>());
    assert_eq!(*all.ends.lock().unwrap(), [End { complete: true, dropped: 0 }]);
    let written = seen.got.lock().unwrap().len() as u64;
    assert!((4..10).contains(&written), "{written}");
    assert_eq!(*seen.ends.lock().unwrap(), [End { complete: false, dropped: 100 - written }]);
    let reports = outlets.reports();
    assert_eq!((reports[0].written, reports[0].dropped, reports[0].queued_bytes), (written, 100 - written, 0));
}

/// Also if it writes all that waits at once, as for a source that confirms what is safe: the source has back what was dropped.
#[test]
fn what_may_be_dropped_goes_back_to_the_source() {
    #[derive(Clone)]
    struct Lent {
        _of: Arc<()>,
    }

    impl Item for Lent {
        const UNIT: &'static str = "numbers";

        fn amount(&self) -> u64 {
            1
        }

        fn bytes(&self) -> u64 {
            8
        }
    }

    struct Failing;

    impl Sink<Lent> for Failing {
        fn write(&mut self, _: &Lent) -> Result {
            Err("it is broken".into())
        }

        fn finish(&mut self, _: End) -> Result {
            Ok(())
        }

        fn intact(&self) -> u64 {
            0
        }

        fn files(&self) -> Option<&Parts> {
            None
        }
    }

    for (policy, may_be_lost) in [(Policy::Drop, true), (Policy::Wait, false)] {
        let copy = may_be_lost.then(|| Box::new(|_: &Lent| Some(Lent { _of: Arc::default() })) as Copy<Lent>);
        let terms = Terms { policy, capacity: 4 * 8, durable: true, optional: false };
        let outlet = Outlet::start("broken", terms, copy, Box::new(Failing)).unwrap();
        let (mut outlets, lent) = (Outlets::new(vec![outlet]), Arc::new(()));
        (0..100).for_each(|_| _ = outlets.offer(&Lent { _of: lent.clone() }));
        assert!(outlets.finish(true).is_err());
        assert_eq!(Arc::strong_count(&lent) == 1, may_be_lost, "{policy:?}");
    }
}

#[test]
fn a_slow_one_that_waits_holds_the_source_up() {
    let (slow, seen) = outlet(Policy::Wait, None, false);
    let mut outlets = Outlets::new(vec![slow]);
    let offered = Arc::new(AtomicBool::new(false));
    let done = offered.clone();
    let thread = std::thread::spawn(move || {
        (0..20).for_each(|i| assert!(outlets.offer(&Number(i))));
        done.store(true, Ordering::Relaxed);
        outlets.finish(true).unwrap();
    });
    (0..10).for_each(|_| seen.go.send(()).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    assert!(!offered.load(Ordering::Relaxed), "10 are written and 4 wait: the others do not fit");
    drop(seen.go);
    thread.join().unwrap();
    assert_eq!(*seen.got.lock().unwrap(), (0..20).collect::<Vec<_>>());
}

#[test]
fn all_are_finished_once_whatever_becomes_of_one() {
    for panics in [false, true] {
        let ((bad, seen), (good, all)) = (outlet(Policy::Wait, Some(3), panics), outlet(Policy::Wait, None, false));
        drop((seen.go, all.go));
        let mut outlets = Outlets::new(vec![bad, good]);
        assert!((0..1000).any(|i| {
            std::thread::sleep(Duration::from_micros(100));
            !outlets.offer(&Number(i))
        }));
        assert!(!outlets.are_well());
        let error = outlets.finish(false).unwrap_err().to_string();
        let what =
            if panics { "panicked: at 3" } else { "No space left on device (os error 28); the disk is full; make" };
        assert!(error.starts_with("slow: ") && error.contains(what), "{error}");
        assert!(error.ends_with("; the 3 numbers before are intact"), "{error}");
        drop(outlets);
        assert_eq!((seen.ends.lock().unwrap().len(), all.ends.lock().unwrap().len()), (1, 1));
        assert!(all.got.lock().unwrap().len() >= 3);
    }
}

/// Where another one could not be opened, too.
#[test]
fn a_sink_whose_source_does_not_begin_is_not_finished() {
    for (begins, expected) in [(false, 0), (true, 1)] {
        let (waiting, seen) = outlet(Policy::Wait, None, false);
        let mut outlets = Outlets::new(vec![waiting]);
        if begins {
            outlets.begin();
        }
        outlets.finish(false).unwrap();
        assert_eq!(seen.ends.lock().unwrap().len(), expected);
        assert_eq!(Arc::strong_count(&seen.ends), 1, "the sink is dropped");
    }
    let (alone, seen) = outlet(Policy::Wait, None, false);
    drop(alone);
    assert_eq!((seen.ends.lock().unwrap().len(), Arc::strong_count(&seen.ends)), (0, 1));
}
