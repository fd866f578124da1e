//! The receiver with its thread, over a cable in memory, against a FEB in software.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::{SoftFeb, FADELINK};
use fadelink_feb::Quirks;
use fadelink_receiver::backend::in_process::InProcess;
use fadelink_receiver::backend::{Backend, Losses, Send};
use fadelink_receiver::shared::Phase;
use fadelink_receiver::{CommandError, Error, FebConfig, Holder, Receiver};
use fadelink_wire::{fade10g, MacAddr};

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const CONFIG: FebConfig = FebConfig { ring_packets: 64, protocol: None, firmware: None, ..FADELINK };
const SECOND: Duration = Duration::from_secs(1);

/// Runs a FEB at the far end of the cable until the returned value is dropped.
struct Running(Arc<AtomicBool>, Option<std::thread::JoinHandle<SoftFeb>>);

impl Running {
    fn spawn(mut cable: InProcess, mut feb: SoftFeb) -> Running {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let taken = cable.receive(&mut |frame, _| feb.take(frame)).unwrap();
                match feb.give(taken == 0) {
                    Some(frame) => cable.send(&frame).unwrap(),
                    None => std::thread::sleep(Duration::from_micros(100)),
                }
            }
            // What was sent before the end is still taken.
            cable.receive(&mut |frame, _| feb.take(frame)).unwrap();
            feb
        });
        Running(stop, Some(thread))
    }

    fn end(mut self) -> SoftFeb {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap()
    }
}

fn bench(words: u64) -> (Receiver, Running) {
    let (here, there) = InProcess::pair(PC, FEB).unwrap();
    let feb = SoftFeb::new(FEB, 16, 0, words, Quirks::default());
    (Receiver::spawn(here).unwrap(), Running::spawn(there, feb))
}

#[test]
fn reads_to_the_end_across_the_ring() {
    let words = 300 * 1024 + 17; // several times the ring
    let (receiver, feb) = bench(words);
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    handle.start().unwrap();
    let (mut got, mut stopped) = (0u64, false);
    while let Some(data) = handle.read(3 * 8192, Some(Duration::from_millis(20))).unwrap() {
        // Leaves some behind, so that slices run across the end of the ring.
        let take = if data.len() > 8192 + 8 { data.len() - 8192 - 8 } else { data.len() };
        for (i, word) in data[..take].chunks(8).enumerate() {
            assert_eq!(word, (got + i as u64).to_le_bytes());
        }
        got += take as u64 / 8;
        handle.release(take);
        if got > words - 20 * 1024 && !stopped {
            // The source has a little left: STOP cuts it off there or later.
            stopped = true;
            handle.stop().unwrap();
        }
    }
    assert!(got <= words && got > words - 20 * 1024);
    assert_eq!(handle.phase(), Phase::Complete);
    drop(handle);
    feb.end();
}

#[test]
fn threshold_timeout_and_event_descriptor() {
    let (receiver, feb) = bench(10 * 1024);
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    let begin = Instant::now();
    assert_eq!(handle.read(1, Some(Duration::from_millis(30))).unwrap(), Some(&[][..]));
    assert!(begin.elapsed() >= Duration::from_millis(30));
    handle.start().unwrap();
    assert_eq!(handle.read(10 * 8192, Some(10 * SECOND)).unwrap().unwrap().len(), 10 * 8192);
    assert!(handle.read(10 * 8192 + 1, Some(Duration::from_millis(30))).unwrap().unwrap().len() == 10 * 8192);

    let readable = |milliseconds| {
        let mut poll = libc::pollfd { fd: handle.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one live pollfd.
        unsafe { libc::poll(&raw mut poll, 1, milliseconds) == 1 }
    };
    assert!(handle.arm(10 * 8192), "there already");
    assert!(!handle.arm(10 * 8192 + 8));
    assert!(!readable(30), "nothing more comes");
    handle.stop().unwrap();
    assert!(readable(10_000), "the end wakes the reader");
    drop(handle);
    feb.end();
}

#[test]
fn commands_from_other_threads() {
    let (receiver, feb) = bench(u64::MAX);
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    handle.start().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let commander = handle.commander();
            std::thread::spawn(move || {
                (0..25).map(|i| commander.command_with(0x0200, i, SECOND, 3).unwrap()).collect::<Vec<_>>()
            })
        })
        .collect();
    while threads.iter().any(|thread| !thread.is_finished()) {
        let bytes = handle.read(8192, Some(SECOND)).unwrap().unwrap().len();
        handle.release(bytes);
    }
    let mut values: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, (1..=100).collect::<Vec<_>>(), "each executed once");
    let start = handle.commander().command_with(fade10g::CMD_START, 0, SECOND, 0);
    assert!(matches!(start, Err(Error::Command { error: CommandError::BadCode(1), .. })));
    drop(handle);
    assert!(!feb.end().running(), "closing ends the transmission");
}

#[test]
fn opened_once_and_with_sense() {
    let (receiver, feb) = bench(0);
    let handle = receiver.open(FEB, CONFIG).unwrap();
    assert!(matches!(receiver.open(FEB, CONFIG), Err(Error::AlreadyOpen(FEB, Holder::This))));
    drop(handle);
    drop(receiver.open(FEB, CONFIG).unwrap());
    for bad in [
        FebConfig { window: 0, ..CONFIG },
        FebConfig { window: 65, ..CONFIG },
        FebConfig { ring_packets: 8, ..CONFIG },
        FebConfig { ring_packets: 48, ..CONFIG },
    ] {
        assert!(matches!(receiver.open(FEB, bad), Err(Error::Config(_))), "{bad:?}");
    }
    feb.end();
}

#[test]
fn reset_breaks_off_and_a_new_start_begins_anew() {
    let (receiver, feb) = bench(u64::MAX);
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    for _ in 0..3 {
        handle.start().unwrap();
        let data = handle.read(8192, Some(10 * SECOND)).unwrap().unwrap();
        assert_eq!(data[..8], [0; 8], "word 0");
        let bytes = data.len();
        handle.release(bytes);
        handle.reset().unwrap();
        let broken_off = loop {
            match handle.read(1, Some(SECOND)) {
                Ok(Some(data)) => {
                    let bytes = data.len();
                    handle.release(bytes);
                }
                other => break other.map(|data| data.map(<[u8]>::len)),
            }
        };
        assert!(matches!(broken_off, Err(Error::Aborted(FEB, ..))), "{broken_off:?}");
    }
    drop(handle);
    feb.end();
}

/// Works for a while, then its interface is gone.
struct Failing(InProcess, Instant);

impl Backend for Failing {
    fn local(&self) -> MacAddr {
        self.0.local()
    }
    fn index(&self) -> u32 {
        0
    }
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.fd()
    }
    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> std::io::Result<usize> {
        if Instant::now() > self.1 {
            return Err(std::io::Error::other("interface test0 is gone"));
        }
        self.0.receive(handler)
    }
    fn send(&mut self, frame: &[u8]) -> std::io::Result<()> {
        self.0.send(frame)
    }
    fn losses(&mut self) -> Losses {
        Losses::default()
    }
}

#[test]
fn a_failed_interface_is_told_to_all() {
    let (here, there) = InProcess::pair(PC, FEB).unwrap();
    let feb = Running::spawn(there, SoftFeb::new(FEB, 16, 0, u64::MAX, Quirks::default()));
    let receiver = Receiver::spawn(Failing(here, Instant::now() + Duration::from_millis(300))).unwrap();
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    handle.start().unwrap();
    let error = loop {
        match handle.read(8192, Some(10 * SECOND)) {
            Ok(Some(data)) => {
                let bytes = data.len();
                handle.release(bytes);
            }
            Ok(None) => panic!("no end was sent"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "interface test0 is gone");
    assert_eq!(handle.command(0x0100, 0).unwrap_err().to_string(), "interface test0 is gone");
    assert!(receiver.open(MacAddr([2; 6]), CONFIG).is_err());
    assert_eq!(receiver.failure().as_deref(), Some("interface test0 is gone"));
    drop(handle);
    feb.end();
}

/// A cable whose end here does what a defect would: it panics after some frames, or cannot steer a FEB's frames.
struct Faulty {
    cable: InProcess,
    frames: usize,
    cannot_steer: bool,
}

impl Backend for Faulty {
    fn local(&self) -> MacAddr {
        self.cable.local()
    }

    fn index(&self) -> u32 {
        self.cable.index()
    }

    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.cable.fd()
    }

    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> std::io::Result<usize> {
        let got = self.cable.receive(handler)?;
        self.frames = self.frames.checked_sub(got).expect("no more frames are wanted");
        Ok(got)
    }

    fn send(&mut self, frame: &[u8]) -> std::io::Result<()> {
        self.cable.send(frame)
    }

    fn losses(&mut self) -> Losses {
        Losses::default()
    }

    fn opened(&mut self, _feb: MacAddr) -> std::io::Result<()> {
        if self.cannot_steer {
            return Err(std::io::Error::other("no socket left"));
        }
        Ok(())
    }
}

#[test]
fn a_panic_in_the_receiving_thread_ends_who_waits() {
    let (cable, there) = InProcess::pair(PC, FEB).unwrap();
    let feb = Running::spawn(there, SoftFeb::new(FEB, 16, 0, u64::MAX, Quirks::default()));
    let receiver = Receiver::spawn(Faulty { cable, frames: 100, cannot_steer: false }).unwrap();
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    handle.start().unwrap();
    // Without a limit of time: it is woken by the end.
    let error = loop {
        match handle.read(8192, None) {
            Ok(Some(data)) => {
                let bytes = data.len();
                handle.release(bytes);
            }
            Ok(None) => panic!("the transmission has not ended"),
            Err(error) => break error,
        }
    };
    let Error::Failed(text) = error else { panic!("{error}") };
    assert!(text.contains("the receiving thread panicked: no more frames are wanted"), "{text}");
    assert!(handle.stop().is_err() && handle.reset().is_err());
    assert!(receiver.failure().is_some_and(|failure| failure == text));
    drop(handle);
    feb.end();
}

#[test]
fn the_slower_way_is_told() {
    let (cable, _there) = InProcess::pair(PC, FEB).unwrap();
    let receiver = Receiver::spawn(Faulty { cable, frames: 0, cannot_steer: true }).unwrap();
    let handle = receiver.open(FEB, CONFIG).unwrap();
    assert_eq!(handle.slower(), Some("no socket left"));
    let (cable, _there) = InProcess::pair(PC, FEB).unwrap();
    let receiver = Receiver::spawn(cable).unwrap();
    assert_eq!(receiver.open(FEB, CONFIG).unwrap().slower(), None);
}

/// Parts are lent to two threads that are done with them in any order, over many turns of the ring.
#[test]
fn lent_parts_stay_as_they_are_until_all_are_done() {
    let words = 300 * 1024 + 17;
    let (receiver, feb) = bench(words);
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    handle.start().unwrap();
    let total = std::thread::scope(|scope| {
        let check = |seed: u64| {
            let (parts, taken) = std::sync::mpsc::channel::<(u64, fadelink_receiver::Loan)>();
            let thread = scope.spawn(move || {
                let (mut random, mut held, mut total) = (fastrand::Rng::with_seed(seed), Vec::new(), 0);
                while let Ok(part) = taken.recv() {
                    held.push(part);
                    if random.bool() || held.len() > 5 {
                        let (first, data): (u64, _) = held.swap_remove(random.usize(..held.len()));
                        for (word, expected) in data.chunks(8).zip(first..) {
                            assert_eq!(word, expected.to_le_bytes(), "seed {seed}");
                        }
                        total += data.len() as u64 / 8;
                    }
                }
                total + held.iter().map(|(_, data)| data.len() as u64 / 8).sum::<u64>()
            });
            (parts, thread)
        };
        let (first, second) = (check(1), check(2));
        let (mut got, mut stopped) = (0, false);
        while handle.wait(8192, Some(Duration::from_millis(5))).unwrap() {
            let part = handle.lend(5 * 8192);
            assert!(part.offset() % 8 == 0 && part.memory().1 == 64 * 8192);
            let number = got;
            got += part.len() as u64 / 8;
            first.0.send((number, part.clone())).unwrap();
            second.0.send((number, part)).unwrap();
            if got > words - 20 * 1024 && !stopped {
                stopped = true;
                handle.stop().unwrap();
            }
        }
        drop((first.0, second.0));
        assert_eq!((first.1.join().unwrap(), second.1.join().unwrap()), (got, got));
        got
    });
    assert!(total > words - 20 * 1024);
    assert_eq!(handle.fill(), (0, 64 * 8192), "all is back");
    drop(handle);
    feb.end();
}

#[test]
fn a_new_transmission_waits_for_what_is_lent() {
    let (receiver, feb) = bench(u64::MAX);
    let mut handle = receiver.open(FEB, CONFIG).unwrap();
    handle.start().unwrap();
    handle.wait(4 * 8192, Some(SECOND)).unwrap();
    let part = handle.lend(5 * 8192);
    handle.reset().unwrap();
    assert!(matches!(handle.start(), Err(Error::Lent(FEB, lent)) if lent == part.len() as u64));
    drop(part);
    handle.start().unwrap();
    drop(handle);
    feb.end();
}
