//! The way from the board to the computer: datagrams are lost, come twice, late and in another order.
//!
//! The protocol has no signatures: nobody can tell a forged datagram that takes the place of a lost one. So a datagram is forged
//! here only if the right one has come, or the board has not sent it yet. Then the right one is not lost. The same is true of
//! datagrams of another run with the same number, as it is after a loss of power.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddrV4;

use fadelink_wire::udp::Datagram;

use super::super::way::Way;
use super::case::Case;

/// Datagrams that are kept, to come again.
const KEPT: usize = 200;

#[derive(Clone)]
struct Sent {
    payload: Vec<u8>,
    to: SocketAddrV4,
    /// Run of the source; `None`: forged.
    run: Option<usize>,
}

pub struct Network {
    /// Those that the board has sent, by run and number as it counts: the run of the source, and whether it has come.
    sent: HashMap<(u8, u32), (usize, bool)>,
    forged: HashSet<(u8, u32)>,
    way: Way<Sent>,
    /// Datagrams of the board that have come, and where to.
    pub passed: VecDeque<(Vec<u8>, SocketAddrV4)>,
    /// Newest number, and its run as the board counts.
    pub newest: (u32, u8),
}

impl Network {
    pub fn new(case: &Case) -> Network {
        Network {
            sent: HashMap::new(),
            forged: HashSet::new(),
            way: Way::new(case.network, case.seed),
            passed: VecDeque::new(),
            newest: (0, 0),
        }
    }

    /// The board sends a datagram in this run of its source. `is_out`: nothing passes.
    pub fn push(&mut self, (payload, to): (Vec<u8>, SocketAddrV4), run: usize, step: u64, is_out: bool) {
        let Ok(Datagram { counter, run: number, end, .. }) = Datagram::parse(&payload) else { return };
        self.newest = (counter, number);
        let sent = Sent { payload, to, run: Some(run) };
        if !end {
            let key = (number, counter);
            if self.sent.get(&key).is_some_and(|(before, has_come)| *before != run && !has_come) {
                return;
            }
            self.sent.insert(key, (run, false));
            if self.forged.contains(&key) {
                self.way.put(sent);
                return;
            }
        }
        self.way.send(sent, step, is_out);
    }

    /// A datagram that the board does not send now.
    pub fn inject(&mut self, payload: Vec<u8>, to: SocketAddrV4) {
        self.way.put(Sent { payload, to, run: None });
    }

    /// The datagrams that come in this step.
    pub fn pop(&mut self, step: u64) -> Vec<(Vec<u8>, SocketAddrV4)> {
        let sent = self.way.pop(step);
        sent.into_iter().filter_map(|sent| self.comes(sent)).collect()
    }

    fn comes(&mut self, Sent { payload, to, run }: Sent) -> Option<(Vec<u8>, SocketAddrV4)> {
        if let Ok(Datagram { counter, run: number, end: false, .. }) = Datagram::parse(&payload) {
            match self.sent.get_mut(&(number, counter)) {
                Some((sent, has_come)) if run == Some(*sent) => *has_come = true,
                Some((_, false)) => return None,
                _ => _ = self.forged.insert((number, counter)),
            }
        }
        if run.is_some() {
            self.passed.push_back((payload.clone(), to));
            if self.passed.len() > KEPT {
                self.passed.pop_front();
            }
        }
        Some((payload, to))
    }
}
