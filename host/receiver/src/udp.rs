//! Streams of the UDP/IP stack (docs/protocol/udp.md): reads datagrams in batches, sorts them, counts gaps.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use fadelink_wire::udp::PAYLOAD_MAX;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use serde::Serialize;
use twox_hash::XxHash3_64;

use crate::sockopt;

/// Datagrams that one call to the kernel takes, at most.
const BATCH: usize = 64;
/// Index of the drops in what SO_MEMINFO tells (SK_MEMINFO_DROPS).
const MEMINFO_DROPS: usize = 8;
const MEMINFO_VALUES: usize = 9;

/// A socket that takes datagrams in batches (recvmmsg).
pub struct Batches {
    socket: OwnedFd,
    // The messages point into the other three, which never move.
    _buffers: Box<[[u8; PAYLOAD_MAX + 1]]>,
    _parts: Box<[libc::iovec]>,
    addresses: Box<[libc::sockaddr_in]>,
    messages: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers go to what the structure owns.
unsafe impl Send for Batches {}

impl Batches {
    /// Listens on `address`; the kernel is asked for a receive buffer of so many bytes.
    ///
    /// # Errors
    /// The address is in use or not available.
    pub fn open(address: SocketAddrV4, receive_buffer: u32, timeout: Duration) -> io::Result<Batches> {
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(timeout))?;
        let socket = OwnedFd::from(socket);
        // Beyond the limit of the system where that is allowed.
        let bytes = receive_buffer as usize;
        if set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
            set_socket_recv_buffer_size(&socket, bytes)?;
        }
        let mut buffers = vec![[0; PAYLOAD_MAX + 1]; BATCH].into_boxed_slice();
        let mut parts: Box<[libc::iovec]> = buffers
            .iter_mut()
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() })
            .collect();
        // SAFETY: all zeros are a valid value of these structures.
        let mut addresses = vec![unsafe { zeroed::<libc::sockaddr_in>() }; BATCH].into_boxed_slice();
        let messages = parts
            .iter_mut()
            .zip(addresses.iter_mut())
            .map(|(part, address)| {
                // SAFETY: as above.
                let mut message = unsafe { zeroed::<libc::mmsghdr>() };
                message.msg_hdr.msg_iov = part;
                message.msg_hdr.msg_iovlen = 1;
                message.msg_hdr.msg_name = (address as *mut libc::sockaddr_in).cast();
                message
            })
            .collect();
        Ok(Batches { socket, _buffers: buffers, _parts: parts, addresses, messages })
    }

    /// Waits for datagrams and gives each, with its sender; none came within the time-out: does nothing. A payload that
    /// is longer than the format allows is given one byte too long.
    ///
    /// # Errors
    /// What the kernel says; an interrupt is not an error.
    pub fn receive(&mut self, mut each: impl FnMut(SocketAddrV4, &[u8])) -> io::Result<usize> {
        for message in &mut *self.messages {
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        }
        // SAFETY: the messages point to live buffers of the given lengths.
        let got = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                BATCH as u32,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        for (message, address) in self.messages[..got as usize].iter().zip(&*self.addresses) {
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            let length = (message.msg_len as usize).min(PAYLOAD_MAX + 1);
            // SAFETY: the kernel has filled so many bytes of this buffer.
            let payload = unsafe {
                std::slice::from_raw_parts((*message.msg_hdr.msg_iov).iov_base.cast::<u8>().cast_const(), length)
            };
            each(SocketAddrV4::new(ip, u16::from_be(address.sin_port)), payload);
        }
        Ok(got as usize)
    }

    /// Datagrams of all senders that the kernel dropped, because this socket's buffer was full.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn kernel_drops(&self) -> io::Result<u32> {
        let mut values = [0u32; MEMINFO_VALUES];
        sockopt::get(&self.socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values, "drops of the socket")?;
        Ok(values[MEMINFO_DROPS])
    }
}

/// Counts of the datagrams of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Delivered, in order.
    pub received: u64,
    /// Never came.
    pub lost: u64,
    /// Came when the ones behind had been given up for and delivered; dropped.
    pub late: u64,
    /// Came again, soon; dropped.
    pub duplicates: u64,
    /// Came again when more than [`Order::WINDOW`] others had come; dropped. The network does not do that: the board has begun anew.
    pub repeated: u64,
    /// Came before one that was sent earlier; delivered in order.
    pub reordered: u64,
    /// Came again with other words; dropped. One of the two is not the board's.
    pub contradictions: u64,
    /// Delivered, though the run had fewer datagrams: not the board's.
    pub beyond: u64,
    /// Sent before the first one that was delivered; never came, or came late.
    pub before: u64,
}

/// Gaps that are remembered one by one.
const GAPS: usize = 1000;

/// A hole in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Counter of the first datagram that is missing.
    pub first: u64,
    /// How many are missing.
    pub count: u64,
}

/// What comes out of [`Order`].
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The next words.
    Words(&'a [u8]),
    /// Datagrams that are missing here.
    Missing(u64),
}

/// Datagrams that were delivered and whose words are known by their hash.
const KNOWN: usize = 1024;

/// Whether the number of a datagram near another one is before that of the first datagram of a run.
fn is_negative(number: u64) -> bool {
    number > u64::MAX / 2
}

/// Puts the datagrams of one run in order; what does not come is a gap once `WINDOW` datagrams behind it are there. Their first has
/// the number 0.
#[derive(Debug, Default)]
pub struct Order {
    /// `None`: whether datagram 0 comes is not known yet.
    next: Option<u64>,
    first: u64,
    /// Hash of the words of the last datagrams, each at its number modulo KNOWN; `None`: it was not delivered.
    hashes: Vec<Option<u64>>,
    ahead: BTreeMap<u64, Vec<u8>>,
    missing: BTreeSet<u64>,
    gaps: Vec<Gap>,
    counts: Counts,
}

impl Order {
    /// How far the datagrams may be out of order.
    pub const WINDOW: usize = 64;

    /// Of a run that this receiver has begun: datagram 0 is due.
    pub fn from_the_start() -> Order {
        Order { next: Some(0), ..Order::default() }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Datagrams that wait for the ones before.
    pub fn waiting(&self) -> usize {
        self.ahead.len()
    }

    /// Counter of the first datagram that was delivered.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The gaps, as many as are remembered.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Number of the datagram with `counter`, near the one that is due.
    fn extend(&self, counter: u32) -> u64 {
        let next = self.next.or(self.ahead.first_key_value().map(|(first, _)| *first)).unwrap_or(counter.into());
        next.wrapping_add_signed(i64::from(counter.wrapping_sub(next as u32).cast_signed()))
    }

    /// Takes a datagram; `step` is told what is next.
    pub fn push(&mut self, counter: u32, words: &[u8], mut step: impl FnMut(Step<'_>)) {
        let number = self.extend(counter);
        let Some(next) = self.next else { return self.begin(number, words, step) };
        if number < self.first || is_negative(number) {
            // From before this receiver was there.
            self.counts.before = self.counts.before.saturating_sub(1);
            self.counts.late += 1;
        } else if number < next {
            if self.missing.remove(&number) {
                self.counts.lost -= 1;
                self.counts.late += 1;
            } else if self.hash(number).is_some_and(|known| known != XxHash3_64::oneshot(words)) {
                self.counts.contradictions += 1;
            } else if number + (Self::WINDOW as u64) < next {
                self.counts.repeated += 1;
            } else {
                self.counts.duplicates += 1;
            }
        } else if number == next {
            self.counts.reordered += u64::from(!self.ahead.is_empty());
            self.next = Some(next);
            self.deliver(words, &mut step);
            self.drain(&mut step);
        } else if self.hold(number, words) {
            self.skip(&mut step);
        }
    }

    /// Takes a datagram of which nobody knows whether it is the first one: the run may have been going on, or datagram 0 comes late.
    fn begin(&mut self, number: u64, words: &[u8], mut step: impl FnMut(Step<'_>)) {
        if is_negative(number) {
            self.counts.late += 1;
        } else if number == 0 {
            self.next = Some(0);
            self.push(0, words, step);
        } else if self.hold(number, words) {
            self.start(&mut step);
        }
    }

    /// Keeps a datagram until those before it are there. True: there are too many.
    fn hold(&mut self, number: u64, words: &[u8]) -> bool {
        if let Some(before) = self.ahead.get(&number) {
            *if before == words { &mut self.counts.duplicates } else { &mut self.counts.contradictions } += 1;
        } else {
            self.ahead.insert(number, words.to_vec());
        }
        self.ahead.len() > Self::WINDOW
    }

    /// Begins with the first datagram that is there.
    fn start(&mut self, step: &mut impl FnMut(Step<'_>)) {
        if let Some((first, _)) = self.ahead.first_key_value() {
            self.first = *first;
            self.counts.before = *first;
            self.next = Some(*first);
            self.drain(step);
        }
    }

    /// Whether a datagram is known to be one that was delivered.
    pub fn is_known(&self, counter: u32, words: &[u8]) -> bool {
        self.hash(self.extend(counter)) == Some(XxHash3_64::oneshot(words))
    }

    /// Hash of the words of a datagram that was delivered, if it is still known.
    fn hash(&self, number: u64) -> Option<u64> {
        self.next.filter(|next| number < *next && next - number <= KNOWN as u64)?;
        self.hashes.get(number as usize % KNOWN).copied().flatten()
    }

    /// What was delivered, or not, is the datagram that was due.
    fn note(&mut self, hash: Option<u64>) {
        let Some(next) = self.next.as_mut() else { return };
        self.hashes.resize(KNOWN, None);
        self.hashes[*next as usize % KNOWN] = hash;
        *next += 1;
    }

    fn deliver(&mut self, words: &[u8], step: &mut impl FnMut(Step<'_>)) {
        step(Step::Words(words));
        self.counts.received += 1;
        self.note(Some(XxHash3_64::oneshot(words)));
    }

    fn drain(&mut self, step: &mut impl FnMut(Step<'_>)) {
        while let Some(words) = self.next.and_then(|next| self.ahead.remove(&next)) {
            self.deliver(&words, step);
        }
    }

    /// Gives up for what is missing before the first that is there.
    fn skip(&mut self, step: &mut impl FnMut(Step<'_>)) {
        let first = self.ahead.first_key_value().map(|(first, _)| *first);
        if let (Some(first), Some(next)) = (first, self.next) {
            self.give_up(next, first, step);
            self.drain(step);
        }
    }

    fn give_up(&mut self, from: u64, to: u64, step: &mut impl FnMut(Step<'_>)) {
        let count = to - from;
        self.counts.lost += count;
        if self.gaps.len() < GAPS {
            self.gaps.push(Gap { first: from, count });
        }
        // Enough to know late ones; older ones do not come any more.
        self.missing.extend(from..from + count.min(4096));
        while self.missing.len() > 8192 {
            self.missing.pop_first();
        }
        step(Step::Missing(count));
        self.next = Some(to - count.min(KNOWN as u64));
        (0..count.min(KNOWN as u64)).for_each(|_| self.note(None));
    }

    /// Whether all `total` datagrams of the run, from the first that came, are delivered.
    pub fn has_all(&self, total: u32) -> bool {
        self.ahead.is_empty() && self.next.unwrap_or(0) == self.extend(total)
    }

    /// The run is over, after `total` datagrams if that is known: what is missing is lost.
    pub fn finish(&mut self, total: Option<u32>, mut step: impl FnMut(Step<'_>)) {
        if self.next.is_none() {
            self.start(&mut step);
        }
        while !self.ahead.is_empty() {
            self.skip(&mut step);
        }
        if let Some(total) = total {
            let (total, next) = (self.extend(total), self.next.unwrap_or(0));
            if total > next {
                self.give_up(next, total, &mut step);
            }
            self.counts.beyond = next.saturating_sub(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs an order of counters; the numbers that came out, with a gap as none.
    fn run(counters: &[u32], total: Option<u32>) -> (Vec<Option<u64>>, Order) {
        let mut out = Vec::new();
        let mut order = Order::default();
        let mut take = |step: Step<'_>| match step {
            Step::Words(words) => out.push(Some(u64::from_le_bytes(words.try_into().unwrap()))),
            Step::Missing(count) => out.extend((0..count).map(|_| None)),
        };
        for counter in counters {
            order.push(*counter, &u64::from(*counter).to_le_bytes(), &mut take);
        }
        order.finish(total, take);
        (out, order)
    }

    #[test]
    fn gaps_are_counted_and_named() {
        let (out, order) = run(&[0, 1, 4, 5], Some(8));
        assert_eq!(out, [Some(0), Some(1), None, None, Some(4), Some(5), None, None]);
        assert_eq!(order.counts(), Counts { received: 4, lost: 4, ..Counts::default() });
        assert_eq!(order.gaps(), [Gap { first: 2, count: 2 }, Gap { first: 6, count: 2 }]);
    }

    #[test]
    fn nothing_at_all_is_all_lost() {
        let (out, order) = run(&[], Some(3));
        assert_eq!((out.len(), order.counts().lost), (3, 3));
    }

    #[test]
    fn late_and_double_ones_are_told_apart() {
        let mut counters: Vec<u32> = (0..200).filter(|n| *n != 10).collect();
        counters.extend([10, 199, 150]);
        let (_, order) = run(&counters, Some(200));
        let counts = Counts { received: 199, late: 1, duplicates: 2, ..Counts::default() };
        assert_eq!(order.counts(), counts);
    }

    #[test]
    fn what_comes_again_far_behind_is_no_repetition_by_the_network() {
        let mut counters: Vec<u32> = (0..200).collect();
        counters.extend([199, 136, 135, 0]);
        let (_, order) = run(&counters, Some(200));
        let counts = Counts { received: 200, duplicates: 2, repeated: 2, ..Counts::default() };
        assert_eq!(order.counts(), counts);
    }

    #[test]
    fn what_came_before_the_first_one_is_missing() {
        let (out, order) = run(&[5, 0, 1, 2, 3, 4, 6], Some(7));
        assert_eq!(out, (0..7).map(Some).collect::<Vec<_>>());
        assert_eq!((order.counts().before, order.counts().reordered), (0, 5));
        for total in [None, Some(4)] {
            let (out, order) = run(&[1, 2, 3], total);
            assert_eq!((out.len(), order.first(), order.counts().before), (3, 1, 1));
        }
        // As of a run that was going on already: the first one comes too late, and one before the counter began.
        let counters: Vec<u32> = (7..100).chain([6, 0]).collect();
        let (_, order) = run(&counters, Some(100));
        assert_eq!(order.counts(), Counts { received: 93, before: 5, late: 2, ..Counts::default() });
    }

    #[test]
    fn what_comes_again_with_other_words_is_no_duplicate() {
        let mut order = Order::from_the_start();
        let mut push = |counter, word: u64| order.push(counter, &word.to_le_bytes(), |_| {});
        let came = [(0, 0), (1, 1), (0, 0), (0, 7), (3, 3), (3, 3), (3, 9), (2, 2), (3, 9)];
        came.into_iter().for_each(|(counter, word)| push(counter, word));
        let counts = order.counts();
        assert_eq!((counts.received, counts.duplicates, counts.contradictions), (4, 2, 3));
        assert!(!order.is_known(1, &[2; 8]) && order.is_known(1, &1u64.to_le_bytes()));
        // Far back nothing is known any more.
        let mut push = |counter: u32| order.push(counter, &u64::from(counter).to_le_bytes(), |_| {});
        (4..2000).for_each(&mut push);
        assert!(!order.is_known(1, &1u64.to_le_bytes()) && order.is_known(1500, &1500u64.to_le_bytes()));
        order.finish(Some(1990), |_| {});
        assert_eq!((order.counts().beyond, order.counts().lost), (10, 0));
    }

    #[test]
    fn the_counter_wraps() {
        let first = u32::MAX - 1;
        let (out, order) = run(&[first, u32::MAX, 1, 0, 2], Some(3));
        assert_eq!(out, [first, u32::MAX, 0, 1, 2].map(|n| Some(u64::from(n))));
        assert_eq!((order.counts().lost, order.counts().before, order.first()), (0, first.into(), first.into()));
    }

    proptest! {
        #[test]
        fn what_comes_within_the_window_comes_out_in_order(
            keys in prop::collection::vec((0u32..40, any::<bool>()), 1..300), lost in prop::collection::btree_set(0u32..300, 0..20),
        ) {
            let total = keys.len() as u32;
            let mut sent: Vec<(u32, u32)> = (0..total).map(|n| (n + keys[n as usize].0, n)).collect();
            sent.sort();
            let lost: Vec<u32> = lost.into_iter().filter(|n| *n < total).collect();
            let mut counters = Vec::new();
            for (_, n) in sent.into_iter().filter(|(_, n)| !lost.contains(n)) {
                counters.push(n);
                if keys[n as usize].1 {
                    counters.push(n);
                }
            }
            let (out, order) = run(&counters, Some(total));
            // Those before the first one that comes are not a gap.
            let first = (0..total).find(|n| !lost.contains(n));
            let expected: Vec<_> = (first.unwrap_or(0)..total).map(|n| (!lost.contains(&n)).then_some(u64::from(n))).collect();
            prop_assert_eq!(out, expected);
            prop_assert_eq!((order.counts().before + order.counts().lost) as usize, lost.len());
            prop_assert_eq!(order.counts().duplicates as usize, counters.len() - (total as usize - lost.len()));
        }
    }
}
