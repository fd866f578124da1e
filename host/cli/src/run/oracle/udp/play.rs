//! Programs that receive as `fadelink run` and `fadelink receive` do, in the world of a seed; what came out of it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use super::super::disk::Disk;
use super::super::program::{self, End};
use super::super::streams;
use super::case::Case;
use super::world::{self, Running, Shared, World};
use crate::board::GroupSettings;
use crate::deadline::Limits;
use crate::interrupts::Interrupts;
use crate::metrics::Meter;
use crate::receive::{udp, Group, Senders, UdpPatience};
use crate::verdict::{Accept, State};

/// As the documented ones, but shorter.
const PATIENCE: UdpPatience = UdpPatience {
    linger: Duration::from_millis(100),
    hold: Duration::from_millis(1500),
    silence: Duration::from_millis(150),
    end: Duration::from_millis(1500),
    doubt: Duration::from_millis(400),
    attempt: Duration::from_millis(30),
    retries: 15,
};
/// Datagrams of a seed: none is lost because of it.
const BUFFER: u32 = 4 << 20;

/// What came out.
pub struct Ended {
    pub state: State,
    pub report: Value,
    /// The last program's.
    pub folder: PathBuf,
    pub world: Shared,
    pub disk: Arc<Disk>,
}

/// How a program receives.
fn settings(
    case: &Case,
    (top, folder): (&Path, &Path),
    (board, receiver): (Ipv4Addr, SocketAddrV4),
) -> anyhow::Result<udp::UdpSettings> {
    if case.named {
        let text = format!(
            "sinks = [\"file:{{board}}.dat\"]\n[[udp]]\nname = \"a\"\naddress = \"{board}\"\nport = {}\nlisten = \"{}\"\n\
             ring = 64\nreceive_buffer = {BUFFER}\n",
            receiver.port(),
            receiver.ip()
        );
        let GroupSettings::Udp(settings) = program::settings((top, folder), &text)? else { anyhow::bail!("no group") };
        return Ok(udp::UdpSettings { patience: PATIENCE, ..settings });
    }
    Ok(udp::UdpSettings {
        address: receiver,
        senders: Senders::Any(Box::new(streams::plan(folder)?)),
        boards: case.starts.then_some(board).into_iter().collect(),
        streams: case.one_stream.then_some(1),
        limits: Limits::default(),
        ring: 64,
        receive_buffer: BUFFER,
        accept: Accept::Confirmed,
        patience: PATIENCE,
    })
}

/// Plays a seed.
///
/// # Errors
/// What should not happen in any case.
pub fn play(case: &Case, top: &Path) -> anyhow::Result<Ended> {
    let world = Arc::new(Mutex::new(World::new(case.clone()).context("the board")?));
    let disk = Arc::new(Disk::new(&top.join("disk"), case.disk));
    let running = Running::begin(&world)?;
    loop {
        let (number, receiver, address) = {
            let mut world = world::lock(&world);
            if !case.starts {
                world.start();
            }
            (world.program, world.receiver, world.address().context("the board's address")?)
        };
        let folder = top.join("disk").join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let interrupts = Interrupts::default();
        let begun = Instant::now();
        let mut group =
            Box::new(udp::Streams::begin(settings(case, (top, &folder), (address, receiver))?, &interrupts)?);
        let (enough, time) = case.stop;
        let is_killed = || world::lock(&world).program != number;
        let wants_end = |bytes| bytes >= enough.max(1) || begun.elapsed() > Duration::from_millis(time);
        match program::receive(&mut *group, &interrupts, is_killed, wants_end)? {
            End::Over => {}
            End::Killed => {
                disk.freeze(&folder);
                interrupts.abort();
                // Its port is free when it has gone.
                let _ = group.finish(true, &mut Meter::default());
                continue;
            }
            End::Failed(error) => return Err(error),
        }
        let (state, report) = match group.finish(true, &mut Meter::default()) {
            Ok(outcome) => (outcome.state, outcome.json()),
            // A file cannot be opened: the command fails and says why.
            Err(error) if disk.failed() > 0 => streams::failed(&error),
            Err(error) => return Err(error),
        };
        drop(running);
        return Ok(Ended { state, report, folder, world, disk });
    }
}
