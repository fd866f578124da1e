//! Programs that receive as `fadelink run` and `fadelink receive` do; what came out of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::disk::Disk;
use super::super::program::{self, End};
use super::super::streams;
use super::case::Case;
use super::sender::World;
use crate::board::GroupSettings;
use crate::deadline::Limits;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::receive::{tcp, Group, Senders};
use crate::verdict::{Accept, State};

/// As the documented one, but shorter.
const PATIENCE: Duration = Duration::from_millis(800);

/// What came out.
pub struct Ended {
    pub state: State,
    pub report: Value,
    /// The last program's.
    pub folder: PathBuf,
    pub world: Arc<World>,
    pub disk: Arc<Disk>,
}

/// How a program receives.
fn settings(case: &Case, (top, folder): (&Path, &Path), world: &World) -> anyhow::Result<tcp::TcpSettings> {
    let accept = if case.told { Accept::Told } else { Accept::Confirmed };
    if case.named {
        let mut text = String::from("sinks = [\"file:{board}.dat\"]\n");
        for (number, address) in world.addresses[..case.boards.len()].iter().enumerate() {
            text += &format!(
                "[[tcp]]\nname = \"b{number}\"\naddress = \"{address}\"\nport = {}\nlisten = \"{}\"\nring = 64\n",
                world.receiver.port(),
                world.receiver.ip()
            );
        }
        let GroupSettings::Tcp(settings) = program::settings((top, folder), &text)? else { anyhow::bail!("no group") };
        return Ok(tcp::TcpSettings { accept, patience: PATIENCE, ..settings });
    }
    Ok(tcp::TcpSettings {
        address: world.receiver.into(),
        senders: Senders::Any(Box::new(streams::plan(folder)?)),
        streams: Some(case.boards.len() as u32),
        limits: Limits::default(),
        ring: 64,
        receive_buffer: None,
        accept,
        patience: PATIENCE,
    })
}

/// Receives until a program has ended, and was not killed.
fn programs(case: &Case, top: &Path, world: &Arc<World>, disk: &Arc<Disk>) -> anyhow::Result<Ended> {
    let mut kill = case.kill.map(Duration::from_millis);
    loop {
        let number = world.program.load(Ordering::Relaxed);
        let folder = top.join("disk").join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let interrupts = Interrupts::default();
        let mut group = Box::new(tcp::Streams::begin(settings(case, (top, &folder), world)?, &interrupts)?);
        let (begun, (enough, time)) = (Instant::now(), case.stop);
        let is_killed = || kill.take_if(|after| begun.elapsed() >= *after).is_some();
        let wants_end = |bytes| bytes >= enough.max(1) || begun.elapsed() > Duration::from_millis(time);
        match program::receive(&mut *group, &interrupts, is_killed, wants_end)? {
            End::Over => {}
            End::Killed => {
                disk.freeze(&folder);
                interrupts.abort();
                let _ = group.finish(true, &mut Meter::default());
                // Its port is free, and who connects now comes to the next one.
                world.program.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            End::Failed(error) => {
                let (state, report) = streams::failed(&error);
                return Ok(Ended { state, report, folder, world: world.clone(), disk: disk.clone() });
            }
        }
        if case.named {
            // As `fadelink run` does behind the last end.
            interrupts.stop();
        }
        let outcome = group.finish(true, &mut Meter::default())?;
        let (state, report) = (outcome.state, outcome.json());
        return Ok(Ended { state, report, folder, world: world.clone(), disk: disk.clone() });
    }
}

/// Plays a seed.
///
/// # Errors
/// What should not happen in any case.
pub fn play(case: &Case, top: &Path) -> anyhow::Result<Ended> {
    let world = Arc::new(World::new(case.boards.len()));
    let disk = Arc::new(Disk::new(&top.join("disk"), case.disk));
    std::thread::scope(|scope| {
        for (number, board) in case.boards.iter().enumerate() {
            let world = &world;
            scope.spawn(move || world.serve(number, board));
        }
        for scan in &case.scans {
            scope.spawn(|| world.scan(*scan));
        }
        let ended = programs(case, top, &world, &disk);
        world.over.store(true, Ordering::Relaxed);
        ended
    })
}
