//! A board in software, of either protocol.

use std::time::Duration;

use fadelink_feb::{Fade10gFeb, Fade1Feb, Quirk, Quirks, Settings};
use fadelink_wire::{MacAddr, Protocol};

use super::super::record::{Record, Source};
use super::case::Case;

/// Either protocol.
pub enum Board {
    Fade10g(Box<Fade10gFeb<Source>>),
    Fade1(Box<Fade1Feb<Source>>),
}

impl Board {
    /// One that was switched on now.
    pub fn new(mac: MacAddr, case: &Case, record: Record) -> Board {
        let source = Source::new(record, case.words, case.burst);
        let quirks = Quirks::of(case.firmware);
        let quirks = if case.crc { quirks } else { quirks.with(Quirk::NoChecksum) };
        let settings = Settings { window: case.window, quirks, ..Settings::default() };
        match case.protocol {
            Protocol::Fade10g => Board::Fade10g(Box::new(Fade10gFeb::new(mac, settings, source))),
            Protocol::Fade1 => Board::Fade1(Box::new(Fade1Feb::new(mac, settings, source))),
        }
    }

    pub fn take(&mut self, frame: &[u8], now: Duration) {
        match self {
            Board::Fade10g(board) => board.take(frame, now),
            Board::Fade1(board) => board.take(frame, now),
        }
    }

    pub fn give(&mut self, now: Duration) -> Option<Vec<u8>> {
        match self {
            Board::Fade10g(board) => board.give(now),
            Board::Fade1(board) => board.give(now),
        }
        .map(<[u8]>::to_vec)
    }
}
