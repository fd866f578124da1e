//! Runs of which nothing has come. What boards say of them is all that is known; where they say nothing, the numbers of the others.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use fadelink_receiver::udp::Order;

use super::stream::{Stream, UNSEEN};
use super::Session;
use crate::verdict::Accept;

/// Numbers of runs are 8 bits: behind the last one the first one comes again. Further apart they are not in this order.
const ORDER: u8 = 128;

impl Session {
    /// Streams whose boards have said that their runs are over before anything had come.
    pub(super) fn find_unseen(&mut self) {
        for (address, run, ended, since) in std::mem::take(&mut self.unseen) {
            let is_it = |stream: &&mut Stream| *stream.peer.ip() == address && stream.run == run;
            match self.streams.iter_mut().rfind(is_it) {
                Some(stream) => stream.has_ended(ended),
                None => self.unseen.push((address, run, ended, since)),
            }
        }
    }

    /// Opens streams for runs that are over and of which nothing has come: the board says what there was. One that has sent another
    /// run was switched off, or somebody else has started it. Of one that says nothing, nobody knows what it had.
    pub(super) fn open_unseen(&mut self) -> anyhow::Result<()> {
        self.find_unseen();
        let missed: Vec<_> = self.boards.addresses().filter(|address| !self.has_come(*address)).collect();
        for address in missed {
            if self.streams.iter().any(|stream| *stream.peer.ip() == address) {
                self.unseen.retain(|(board, ..)| *board != address);
                let what = format!("{address} has sent nothing of the run that it was asked for, and another run");
                self.instead.push(what);
            } else if !self.has_failed(address) && !self.unseen.iter().any(|(board, ..)| *board == address) {
                self.instead.push(format!("{address} has sent nothing, and has not told whether its run is over"));
            }
        }
        for (address, run, ended, _) in std::mem::take(&mut self.unseen) {
            // Nobody knows the port that it would have come from.
            let peer = SocketAddrV4::new(address, UNSEEN);
            if let Some(mut stream) = Stream::open((peer, run, 0), 0, Order::from_the_start(), &self.setup)? {
                stream.has_ended(ended);
                self.streams.push(stream);
            }
        }
        Ok(())
    }

    /// Boards that were stopped, and that have not said which runs they have begun.
    pub(super) fn uncounted(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.boards.addresses().filter(|address| !self.next.contains_key(address) && !self.has_failed(*address))
    }

    /// Notes runs of which nothing has come: those between others of a sender, and those of a board behind its last one. `are_all_wanted`:
    /// the boards were stopped before their streams were enough.
    pub(super) fn find_missed(&mut self, are_all_wanted: bool) {
        let mut all: BTreeMap<(Ipv4Addr, Option<u16>), Vec<u8>> = BTreeMap::new();
        for stream in &self.streams {
            let (address, port) = (*stream.peer.ip(), stream.peer.port());
            // One computer may have more than one source; a board that is named has one.
            let port = Some(port).filter(|_| !self.boards.contains(address));
            all.entry((address, port)).or_default().push(stream.run);
        }
        for ((address, _), runs) in all {
            let next = match self.next.get(&address).filter(|_| are_all_wanted) {
                Some(Ok(next)) => Some(*next),
                Some(Err(what)) => {
                    self.instead.push(what.clone());
                    None
                }
                None => None,
            };
            match missed(&runs, next) {
                0 => {}
                255 => self.instead.push(format!(
                    "{address} has sent 255 runs of which nothing came, or words came of a run that it has not begun"
                )),
                1 => self.instead.push(format!("{address} has sent a run of which nothing came")),
                missed => self.instead.push(format!("{address} has sent {missed} runs of which nothing came")),
            }
        }
        // Who takes an end that the board does not confirm for the end needs no answer of it.
        let must_tell = are_all_wanted && self.setup.accept == Accept::Confirmed;
        let uncounted = self.uncounted().filter(|address| must_tell && self.has_come(*address));
        let untold: Vec<_> =
            uncounted.map(|address| format!("{address} has not told how many runs it has sent")).collect();
        self.instead.extend(untold);
    }
}

/// How many runs are missing between these, in the order in which they came, and before the `next` one, whose number is known of a board
/// that was stopped: it is behind all of them.
fn missed(runs: &[u8], next: Option<u8>) -> u32 {
    let between = |pair: &[u8]| match pair[1].wrapping_sub(pair[0]) {
        ahead @ 2..ORDER => u32::from(ahead) - 1,
        _ => 0,
    };
    let behind = |last: &u8, next: u8| u32::from(next.wrapping_sub(*last).wrapping_sub(1));
    let before: u32 = runs.windows(2).map(between).sum();
    before + runs.last().zip(next).map_or(0, |(last, next)| behind(last, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_between_others_and_behind_the_last_one_are_missing() {
        for (runs, next, expected) in [
            (&[][..], Some(7), 0),
            (&[5], None, 0),
            (&[5], Some(6), 0),
            (&[254, 255, 0, 1], Some(2), 0),
            (&[254, 1], Some(2), 2),
            (&[0, 2, 3], Some(4), 1),
            (&[0, 1], Some(3), 1),
            // However many: 256 look as none.
            (&[0], Some(129), 128),
            (&[3], Some(3), 255),
            // It was switched off and on, which its mark tells.
            (&[9, 0, 0], Some(1), 0),
        ] {
            assert_eq!(missed(runs, next), expected, "{runs:?} {next:?}");
        }
    }
}
