//! What is certain of the data in sinks, when the program that wrote them was ended by force or by a power cut: and whether all is
//! there that may have been confirmed to the board.

use std::io;
use std::path::Path;

use blake3::Hash;

use crate::hashes::{self, Blocks, Entry, Record, HASHED_BYTES};
use crate::sink::Result;
use crate::stored::Stored;

/// Bytes that a board sends, at most, behind what is confirmed to it: 64 packets of FADE-10G. What sinks and hashes have is
/// confirmed but for so much of its end.
pub const UNCONFIRMED: u64 = 64 * fadelink_wire::fade10g::PACKET_BYTES as u64;

/// What is certain of a board's data.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The hashes of the rest, to go on with.
    pub blocks: Blocks,
    /// Those of the blocks, with which earlier data is to be compared.
    pub hashes: Vec<Hash>,
    /// What is wrong with the hashes, in words: nothing else tells what is certain.
    pub damaged: Option<String>,
    /// What is not there, in words, and was confirmed, of data that is confirmed when it is safe.
    pub lost: Option<String>,
}

/// The data of a record, hashed from the begin of its block on: what goes on behind it.
fn hashed(sink: &dyn Stored, record: &Record) -> Result<Blocks> {
    let mut blocks = Blocks::behind(record.block() * HASHED_BYTES);
    sink.each(blocks.end(), record.end, &mut |data| blocks.update(data, |_| Ok::<_, io::Error>(())).is_ok())?;
    Ok(blocks.with_crc(record.crc))
}

/// How many entries from the first on the data of a sink has, by those of one block; behind it, the entry that it has not.
/// `None`: it has none of this block.
fn fitting(sink: &dyn Stored, entries: &[Entry]) -> Result<usize> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(0) };
    let begin = first.record.block() * HASHED_BYTES;
    let (mut blocks, mut at) = (Blocks::behind(begin), begin);
    let (mut count, mut is_right) = (0, true);
    sink.each(begin, last.record.end, &mut |mut data| {
        while let (Some(entry), true) = (entries.get(count), is_right) {
            let wanted = (entry.record.end - at) as usize;
            if data.len() < wanted {
                break;
            }
            let (now, later) = data.split_at(wanted);
            let mut whole = None;
            let _ = blocks.update(now, |record| {
                whole = Some(record);
                Ok::<_, io::Error>(())
            });
            let found = whole.or(blocks.rest()).map(|record| record.hash);
            is_right = found == Some(entry.record.hash);
            count += usize::from(is_right);
            (at, data) = (entry.record.end, later);
        }
        at += data.len() as u64;
        is_right && blocks.update(data, |_| Ok::<_, io::Error>(())).is_ok()
    })?;
    Ok(count)
}

/// How many entries from the first on a sink has, by the newest block of which it has some.
fn newest(sink: &dyn Stored, entries: &[Entry]) -> Result<usize> {
    let mut end = entries.len();
    while let Some(last) = entries[..end].last() {
        let begin = entries[..end].partition_point(|entry| entry.record.block() < last.record.block());
        match fitting(sink, &entries[begin..end])? {
            0 => end = begin,
            count => return Ok(begin + count),
        }
    }
    Ok(0)
}

/// Finds what is certain of a board's data: the longest part that has a hash in the file `path` and is the same in all
/// `sinks`. Nothing is changed.
///
/// # Errors
/// The operating system's, or those of a sink.
pub fn recover(path: &Path, sinks: &[Box<dyn Stored>]) -> Result<Recovered> {
    let named = path.display();
    let ends = sinks.iter().map(|sink| sink.end()).collect::<Result<Vec<_>>>()?;
    let written = ends.iter().copied().max().unwrap_or(0);
    let (entries, damage) = match hashes::read_whole(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let damaged =
                (written > 0).then(|| format!("{named}: it is missing, and there are {written} bytes of words"));
            return Ok(Recovered { damaged, ..Recovered::default() });
        }
        found => found?,
    };
    let recorded = entries.last().map_or(0, |entry| entry.record.end);
    let least = written.max(recorded).saturating_sub(UNCONFIRMED);
    let damaged = damage.map(|byte| format!("{named}: byte {byte}: expected the record of a hash"));
    let ends_early = || format!("{named}: it ends with byte {recorded} of the words, expected {least} or more");
    let mut lost = (recorded < least).then(ends_early);
    let mut kept = entries.len();
    for (sink, there) in sinks.iter().zip(&ends) {
        if *there < least {
            let place = sink.place(*there);
            lost.get_or_insert_with(|| format!("{place}: the words end at byte {there}, expected {least} or more"));
        }
        let count = newest(&**sink, &entries)?;
        let begin = entries[..count].last().map_or(0, |entry| entry.record.end);
        if let Some(next) = entries.get(count).filter(|_| begin < least) {
            let (place, end) = (sink.place(begin), next.record.end);
            let what = || format!("{place}: bytes {begin} to {end} of the words are not those that were received");
            lost.get_or_insert_with(what);
        }
        kept = kept.min(count);
    }
    let Some(Entry { record, .. }) = entries[..kept].last() else {
        return Ok(Recovered { damaged, lost, ..Recovered::default() });
    };
    let blocks = sinks.first().map_or(Ok(Blocks::default()), |sink| hashed(&**sink, record))?;
    Ok(Recovered { blocks, hashes: hashes::of_blocks(&entries[..kept]).0, damaged, lost })
}

#[cfg(test)]
mod tests;
