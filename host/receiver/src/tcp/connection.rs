//! A connection of a board: whether its end was asked for, and whether that has come in time.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::ops::{Deref, RangeInclusive};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt::set_socket_linger;

use crate::descriptors::Promise;
use crate::tcp_info::Info;
use crate::time_wait::{came_first, Ends, CLOSING, FIN_WAIT1, FIN_WAIT2};

/// From the question for the end to the end, at most, however much comes: a board sends what it has, and closes (docs/reliability.md).
pub const END: Duration = Duration::from_secs(30);

/// A wait for a sink that is shorter is part of that time: a sink that is slow does not keep a board from its end, one that stands still
/// does.
const STALL: Duration = Duration::from_secs(1);

/// The end does not wait longer for sinks.
const STALLS: Duration = Duration::from_secs(600);

/// What is on its way when the end is asked for has come by then; a board that goes on may be cut off.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// After this time a connection that goes on is told.
const LATE: Duration = Duration::from_secs(5);

/// A connection that was asked for its end to make room, and over which nothing comes for so long, is broken.
const LEAVE: Duration = Duration::from_secs(2);

/// Times from one look at FIN to the next.
const FIN_LOOK: RangeInclusive<Duration> = Duration::from_millis(2)..=Duration::from_millis(10);
/// Of what has happened in so short a time the order is not known, and not asked for: FIN was sent again, and answered.
const SOON: Duration = Duration::from_millis(20);

/// The question for the end.
#[derive(Debug, Clone, Copy)]
struct Question {
    at: Instant,
    /// Bytes that had come by then.
    came: u64,
}

/// Time behind the question for the end in which a sink has kept what comes from being read.
#[derive(Debug, Default)]
struct Stalls {
    all: Duration,
    /// That of now.
    since: Option<Instant>,
}

impl Stalls {
    /// The one of now, behind the question for the end.
    fn now(&self, question: Option<&Question>) -> Duration {
        let begin = self.since.and_then(|since| Some(since.max(question?.at)));
        begin.map(|begin| begin.elapsed()).filter(|time| *time >= STALL).unwrap_or_default()
    }

    fn end(&mut self, question: Option<&Question>) {
        self.all += self.now(question);
        self.since = None;
    }

    fn total(&self, question: Option<&Question>) -> Duration {
        (self.all + self.now(question)).min(STALLS)
    }
}

/// A sink keeps what comes over a connection from being read, until this is dropped.
pub struct Stall<'a>(&'a Connection);

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.0.stalls().end(self.0.question.get());
    }
}

/// A connection, and whether its end was asked for.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    /// `None`: it was closed before it was served.
    ends: Option<Ends>,
    /// `None`: not yet; false: when that was done, the other end had closed already.
    asked: Mutex<Option<bool>>,
    fin: Mutex<Fin>,
    question: OnceLock<Question>,
    stalls: Mutex<Stalls>,
    /// Why it is broken by this side.
    given_up: OnceLock<String>,
    /// When it was asked, to make room for others.
    leaves: OnceLock<Instant>,
    /// For its files.
    files: Mutex<Promise>,
    /// For their descriptions, which are written at the end.
    _descriptions: Promise,
}

/// What is known of our FIN while that of the other end had not come.
#[derive(Debug, Default)]
struct Fin {
    /// Times that anything of this side was sent again.
    retransmissions: u32,
    is_confirmed: bool,
    /// When that was looked at.
    looked: Option<Instant>,
}

impl Connection {
    pub(super) fn new(socket: TcpStream, files: Promise, descriptions: Promise) -> Connection {
        Connection {
            ends: Ends::of(&socket).ok(),
            socket,
            asked: Mutex::new(None),
            fin: Mutex::default(),
            question: OnceLock::new(),
            stalls: Mutex::default(),
            given_up: OnceLock::new(),
            leaves: OnceLock::new(),
            files: Mutex::new(files),
            _descriptions: descriptions,
        }
    }

    fn asked(&self) -> MutexGuard<'_, Option<bool>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fin(&self) -> MutexGuard<'_, Fin> {
        self.fin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stalls(&self) -> MutexGuard<'_, Stalls> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its files are open, or it gets none.
    pub fn has_files(&self) {
        std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Asks the board for the end, once.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn ask(&self) -> io::Result<()> {
        self.question.get_or_init(|| Question { at: Instant::now(), came: self.came() });
        self.close()
    }

    /// Closes this side's direction, once.
    fn close(&self) -> io::Result<()> {
        let mut asked = self.asked();
        if asked.is_some() {
            return Ok(());
        }
        self.fin().retransmissions = self.info()?.retransmissions;
        let was_closed = self.is_closed();
        *asked = Some(!was_closed);
        self.socket.shutdown(Shutdown::Write)?;
        *asked = Some(!came_first(was_closed, self.info()?.state, || self.ends.as_ref().is_some_and(Ends::wait)));
        Ok(())
    }

    /// Looks whether the other end has confirmed our FIN before its own came. Who reads is to call this, and to wait no longer than what it
    /// returns before the next time, or than `longest`.
    pub fn look_at_fin(&self, longest: Duration) -> Duration {
        let Some(Question { at, .. }) = self.question.get() else { return longest };
        let mut fin = self.fin();
        if fin.is_confirmed {
            return longest;
        }
        match self.info() {
            Ok(Info { state: FIN_WAIT1, retransmissions, .. }) => fin.retransmissions = retransmissions,
            Ok(Info { state: FIN_WAIT2, .. }) => fin.is_confirmed = true,
            _ => return longest,
        }
        fin.looked = Some(Instant::now());
        // TCP repeats it more and more seldom.
        (at.elapsed() / 100).clamp(*FIN_LOOK.start(), *FIN_LOOK.end()).min(longest)
    }

    /// FIN of the other end, which has come, may have been sent before ours was there: both have crossed on the way. If it does not confirm
    /// ours, TCP is in the state CLOSING until that has come too, which may be gone when this is called. Then ours was sent again since the
    /// last look, unless both were on their way in the same moment. Right behind a look that is the answer to what was sent again.
    fn may_have_crossed(&self) -> bool {
        let fin = self.fin();
        let is_seen = fin.looked.is_some_and(|looked| looked.elapsed() <= SOON);
        let crosses = |info: Info| info.state == CLOSING || (info.retransmissions != fin.retransmissions && !is_seen);
        !fin.is_confirmed && self.info().map_or(true, crosses)
    }

    fn info(&self) -> io::Result<Info> {
        Info::of(&self.socket)
    }

    /// Bytes that have come.
    fn came(&self) -> u64 {
        self.info().map_or(0, |info| info.bytes_received)
    }

    /// Nothing has come over it.
    pub(super) fn is_silent(&self) -> bool {
        self.info().is_ok_and(|info| info.bytes_received == 0)
    }

    /// Asks it for its end, to make room; true the first time. If something comes nevertheless, it is served as all others.
    pub(super) fn leave(&self) -> bool {
        if let Some(since) = self.leaves.get() {
            if since.elapsed() >= LEAVE {
                // What comes from now on is not confirmed: its board learns that the connection is broken.
                let _ = self.socket.shutdown(Shutdown::Both);
            }
            return false;
        }
        let _ = self.leaves.set(Instant::now());
        // Of a connection that is broken, its reader learns it, too.
        let _ = self.close();
        true
    }

    /// It was asked to make room.
    pub fn has_left(&self) -> bool {
        self.leaves.get().is_some()
    }

    /// FIN of the other end, which has just come, is the answer to [`Connection::ask`]: it has not crossed ours on the way. One that had to
    /// make room has said nothing of the end of its data.
    pub fn was_asked(&self) -> bool {
        *self.asked() == Some(true) && !self.has_left() && !self.may_have_crossed()
    }

    /// Data has come that was not read yet.
    pub fn is_unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.socket).is_ok_and(|bytes| bytes > 0)
    }

    /// FIN has come, perhaps behind data that was not read yet.
    pub fn is_closed(&self) -> bool {
        let mut polls = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let ready = rustix::event::poll(&mut polls, Some(&Timespec::default())).unwrap_or(0);
        ready > 0 && polls[0].revents().contains(PollFlags::RDHUP)
    }

    /// A sink keeps what comes from being read: a board is not blamed for that.
    pub fn stall(&self) -> Stall<'_> {
        self.stalls().since = Some(Instant::now());
        Stall(self)
    }

    /// When its end was asked for.
    pub fn asked_at(&self) -> Option<Instant> {
        self.question.get().map(|question| question.at)
    }

    /// How long ago the end was asked for of one that goes on nevertheless, and the bytes that have come since.
    fn goes_on(&self) -> Option<(Duration, u64)> {
        let Question { at, came } = *self.question.get()?;
        let is_over = self.given_up.get().is_some() || self.is_closed();
        (!is_over).then(|| (at.elapsed(), self.came().saturating_sub(came)))
    }

    /// Says so of one that goes on long after its end was asked for.
    pub(super) fn is_late(&self) -> Option<String> {
        let (time, bytes) = self.goes_on().filter(|(time, _)| *time >= LATE)?;
        let peer = self.socket.peer_addr().map_or("?".into(), |peer| peer.to_string());
        Some(format!(
            "{peer}: its end was asked for {} s ago and has not come; {bytes} bytes came since",
            time.as_secs()
        ))
    }

    /// Gives it up when its time is over.
    pub(super) fn end_in_time(&self, limit: Duration) {
        let limit = limit + self.stalls().total(self.question.get());
        let Some((time, bytes)) = self.goes_on().filter(|(time, _)| *time >= limit) else { return };
        let seconds = time.as_secs();
        self.give_up(match bytes {
            0 => format!("nothing came for {seconds} s after the end was asked for"),
            _ => format!(
                "the board sent on: {bytes} bytes came in the {seconds} s after its end was asked for, and no end; its connection was \
                 reset"
            ),
        });
    }

    /// Gives it up where its end was asked for and what was on its way must have come: `why`.
    pub(super) fn cut(&self, why: &str) {
        if let Some((_, bytes)) = self.goes_on().filter(|(time, _)| *time >= ON_ITS_WAY) {
            self.give_up(format!(
                "the board sent on: {bytes} bytes came after its end was asked for, and no end; {why}; its connection was reset"
            ));
        }
    }

    /// Resets it. Who reads of it learns why.
    fn give_up(&self, why: String) {
        let _ = self.given_up.set(why);
        let _ = set_socket_linger(&self.socket, Some(Duration::ZERO));
        // From now on the answer to data is a reset. Where none comes, it is sent when the socket is closed.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Why this side has broken it.
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.get().map(String::as_str)
    }
}

impl Deref for Connection {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.socket
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let board = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Connection::new(listener.accept().unwrap().0, Promise::default(), Promise::default()), board)
    }

    /// It may have more, which it cannot send as long as there is no room.
    #[test]
    fn an_end_to_make_room_is_not_one_that_was_asked_for() {
        let (connection, mut board) = pair();
        assert!(connection.is_silent() && connection.leave() && !connection.leave());
        board.write_all(&[7; 8]).unwrap();
        board.shutdown(Shutdown::Both).unwrap();
        assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 8, "what comes nevertheless is served");
        assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 0);
        assert!(!connection.is_silent() && !connection.was_asked());
    }

    /// Also if what the board sent before it closed is not read yet.
    #[test]
    fn an_end_that_came_first_was_not_asked_for() {
        for (board_first, was_asked) in [(true, false), (false, true)] {
            let (connection, mut board) = pair();
            board.write_all(&[7; 8]).unwrap();
            if board_first {
                board.shutdown(Shutdown::Write).unwrap();
                while !connection.is_closed() {}
            }
            assert!(!connection.was_asked());
            connection.ask().unwrap();
            assert_eq!(board.read(&mut [0]).unwrap(), 0, "it is asked in any case");
            board.shutdown(Shutdown::Both).ok();
            connection.ask().unwrap();
            assert_eq!(connection.was_asked(), was_asked);
            assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 8);
            assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 0);
        }
    }

    /// However much comes: a board that is silent and one that sends on have the same time, and their connections are reset.
    #[test]
    fn a_connection_whose_end_does_not_come_is_given_up() {
        const LIMIT: Duration = Duration::from_millis(50);
        for (sends, why) in [(false, "nothing came for"), (true, "the board sent on: 16 bytes")] {
            let (connection, mut board) = pair();
            board.write_all(&[7; 8]).unwrap();
            connection.end_in_time(Duration::ZERO);
            assert!(connection.given_up().is_none(), "nobody has asked for the end");
            while !connection.is_unread() {}
            connection.ask().unwrap();
            let asked = Instant::now();
            while connection.given_up().is_none() {
                if sends && connection.came() < 24 {
                    board.write_all(&[7; 8]).unwrap();
                }
                connection.end_in_time(LIMIT);
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(asked.elapsed() >= LIMIT);
            assert!(connection.given_up().unwrap().contains(why), "{:?}", connection.given_up());
            drop(connection);
            while board.write_all(&[7; 8]).is_ok() {}
        }
    }

    /// A board that has closed has ended, though not all was read.
    #[test]
    fn an_end_that_has_come_is_in_time() {
        let (connection, mut board) = pair();
        connection.ask().unwrap();
        board.write_all(&[7; 8]).unwrap();
        board.shutdown(Shutdown::Write).unwrap();
        while !connection.is_closed() {}
        connection.end_in_time(Duration::ZERO);
        connection.cut("the disk is full");
        assert!(connection.given_up().is_none());
        assert_eq!((&*connection).read(&mut [0; 9]).unwrap(), 8);
    }

    #[test]
    fn time_in_which_a_sink_stands_still_is_not_the_boards() {
        let question = Question { at: Instant::now().checked_sub(4 * STALL).unwrap(), came: 0 };
        let begun = |before: Duration| Stalls { all: Duration::ZERO, since: Instant::now().checked_sub(before) };
        for (before, question, expected) in [
            (2 * STALL, Some(&question), 2 * STALL),
            (9 * STALL, Some(&question), 4 * STALL),
            (STALL / 2, Some(&question), Duration::ZERO),
            (9 * STALL, None, Duration::ZERO),
        ] {
            let mut stalls = begun(before);
            for _ in 0..2 {
                let total = stalls.total(question);
                assert!((expected..expected + STALL).contains(&total), "{before:?}: {total:?}, expected {expected:?}");
                stalls.end(question);
            }
        }
        let (connection, _board) = pair();
        connection.ask().unwrap();
        let _stall = connection.stall();
        connection.stalls().all = 2 * STALL;
        connection.end_in_time(STALL);
        assert!(connection.given_up().is_none());
    }
}
