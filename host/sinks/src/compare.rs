//! Compares all that a sink has of a board's words with their hashes.

use std::io;

use blake3::Hash;

use crate::hashes::{Blocks, Record, HASHED_BYTES};
use crate::stored::Stored;

/// What of a sink is not what it was, in words: of its bytes before `end`, whose blocks have these hashes. `go_on` is called with
/// the bytes of each piece; false: it is not wanted any more.
pub fn differences(
    sink: &dyn Stored,
    (hashes, end): (&[Hash], u64),
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Vec<String> {
    let (mut blocks, mut found, mut is_wanted) = (Blocks::default(), Vec::new(), true);
    let mut look = |record: Record| {
        if hashes.get(record.block() as usize) != Some(&record.hash) {
            let (begin, end) = (record.block() * HASHED_BYTES, record.end);
            let place = sink.place(begin);
            found.push(format!("{place}: bytes {begin} to {end} of the words are not those that were received"));
        }
        Ok::<_, io::Error>(())
    };
    let read = sink.each(0, end, &mut |data| {
        is_wanted = blocks.update(data, &mut look).is_ok() && go_on(data.len() as u64);
        is_wanted
    });
    if let (Some(rest), true) = (blocks.rest(), is_wanted && blocks.end() == end) {
        let _ = look(rest);
    }
    match read {
        Err(failure) => found.push(format!("{}: the words cannot be read: {failure}", sink.place(blocks.end()))),
        Ok(()) if is_wanted && blocks.end() < end => {
            found.push(format!("{}: the words end at byte {}, expected {end}", sink.place(end), blocks.end()));
        }
        Ok(()) => {}
    }
    found
}
