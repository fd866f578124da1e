//! The board in software.

use fadelink_feb::{Board, BoardSettings, Quirk, Quirks};
use fadelink_wire::MacAddr;

use super::super::record::{Record, Source};
use super::case::Case;

/// One that was switched on now.
pub fn board(mac: MacAddr, case: &Case, record: Record) -> Board<Source> {
    let source = Source::new(record, case.words, case.burst);
    let quirks = Quirks::of(case.firmware);
    let quirks = if case.crc { quirks } else { quirks.with(Quirk::NoChecksum) };
    let settings = BoardSettings { window: case.window, quirks, ..BoardSettings::default() };
    Board::new(case.protocol, mac, settings, source)
}
