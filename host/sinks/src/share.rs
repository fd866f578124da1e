//! Other programs on this computer read the ring in place.
//!
//! The sink is a UNIX socket of type SEQPACKET. A reader that connects gets one message, [`Hello`], with the
//! descriptor of the ring's memory file. It maps the file read only, twice in a row, so that every block is
//! contiguous. For each block it gets a [`Part`], and answers with 8 bytes when it has read it: the number of
//! bytes. The block returns to the ring when all readers have answered, so a slow reader slows the board down. A
//! part of 0 bytes ends the transmission; its offset is 1 if it was complete. Numbers are little-endian.
//! docs/sinks.md has an example.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    accept_with, listen, recv, send, sendmsg, socket_with, AddressFamily, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

use crate::block::Block;
use crate::made::Identity;
use crate::parts::Parts;
use crate::sink::{End, Result, Sink, Stopping};
use crate::unix_path;

/// First bytes of [`Hello`].
pub const MAGIC: [u8; 8] = *b"FADERING";
/// Version of this protocol.
pub const VERSION: u64 = 1;

/// What a reader gets first: [`MAGIC`], [`VERSION`], bytes of the ring, bits of a word, which is in this computer's order.
pub type Hello = [u8; 32];
/// What a reader gets for each block: offset in the ring, bytes.
pub type Part = [u8; 16];

/// How often a wait looks whether the end was asked for.
const LOOK: Duration = Duration::from_millis(100);
/// Longest wait for a reader that takes nothing, when the end was asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The socket, and its readers.
pub struct ShareSink {
    listener: OwnedFd,
    path: PathBuf,
    /// What has the path.
    made: Option<Identity>,
    readers: Vec<OwnedFd>,
    /// The first block waits for a first reader.
    wait: bool,
    stopping: Stopping,
    written: u64,
}

/// Waits until there is something to read; false: the end was asked for, `patience` ago or longer.
fn is_readable(fd: &OwnedFd, stopping: &Stopping, patience: Duration) -> bool {
    let mut asked: Option<Instant> = None;
    loop {
        let look = Timespec::try_from(LOOK).ok();
        if poll(&mut [PollFd::new(fd, PollFlags::IN)], look.as_ref()).is_ok_and(|ready| ready > 0) {
            return true;
        }
        let is_over = |since: &mut Instant| since.elapsed() >= patience;
        if stopping.load(Ordering::Relaxed) && is_over(asked.get_or_insert_with(Instant::now)) {
            return false;
        }
    }
}

fn pair(first: u64, second: u64) -> Part {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    bytes
}

impl ShareSink {
    /// Makes the socket. `wait`: no data is taken before a first reader is there, or the end was asked for.
    ///
    /// # Errors
    /// The operating system's; of a path that is in use.
    pub fn bind(path: &str, wait: bool, stopping: Stopping) -> io::Result<ShareSink> {
        let listener = seqpacket(SocketFlags::NONBLOCK)?;
        let is_used = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        match unix_path::bind(&listener, path.as_ref()) {
            Err(error) if is_used(&error) && !std::fs::symlink_metadata(path)?.file_type().is_socket() => {
                let text = format!("the file {path} exists, and is not a socket; choose another name");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
            }
            // Left behind by a program that was killed: nobody answers there.
            Err(error) if is_used(&error) && !is_served(path.as_ref())? => {
                std::fs::remove_file(path)?;
                unix_path::bind(&listener, path.as_ref())?;
            }
            other => other?,
        }
        listen(&listener, 16)?;
        Ok(ShareSink {
            listener,
            made: what_has(path.as_ref()),
            path: path.into(),
            readers: Vec::new(),
            wait,
            stopping,
            written: 0,
        })
    }

    /// Takes readers that have come since; waits for a first one if that was asked for.
    fn accept(&mut self, block: &Block) -> Result {
        while self.wait && self.readers.is_empty() {
            if !is_readable(&self.listener, &self.stopping, Duration::ZERO) {
                return Err("no reader came before the end was asked for".into());
            }
            self.accept_all(block)?;
            if self.readers.is_empty() {
                // It left at once, or there is no descriptor for it now.
                std::thread::sleep(LOOK);
            }
        }
        self.wait = false;
        self.accept_all(block)
    }

    fn accept_all(&mut self, block: &Block) -> Result {
        let (memory, bytes) = block.data.memory();
        loop {
            let reader = match accept_with(&self.listener, SocketFlags::CLOEXEC) {
                Ok(reader) => reader,
                // Who cannot be taken now waits for the next block.
                Err(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return Ok(()),
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut hello: Hello = [0; 32];
            hello[..8].copy_from_slice(&MAGIC);
            hello[8..24].copy_from_slice(&pair(VERSION, bytes));
            hello[24..].copy_from_slice(&u64::from(block.origin.word_bits()).to_le_bytes());
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let (mut control, fds) = (SendAncillaryBuffer::new(&mut space), [memory]);
            control.push(SendAncillaryMessage::ScmRights(&fds));
            if sendmsg(&reader, &[IoSlice::new(&hello)], &mut control, SendFlags::NOSIGNAL).is_ok() {
                self.readers.push(reader);
            }
        }
    }

    /// Tells all readers of a part, and waits until each is done with it. Readers that have gone are forgotten.
    fn tell(&mut self, part: &Part) -> Result {
        let tell = |fd: &OwnedFd| send(fd, part, SendFlags::NOSIGNAL).is_ok();
        self.readers.retain(tell);
        let mut is_stuck = false;
        self.readers.retain(|fd| loop {
            let mut done = [0; 8];
            if !is_readable(fd, &self.stopping, PATIENCE) {
                is_stuck = true;
                break false;
            }
            match recv(fd, &mut done, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                result => break result.is_ok_and(|(_, bytes)| bytes == 8) && done == part[8..],
            }
        });
        if is_stuck {
            let seconds = PATIENCE.as_secs();
            return Err(format!("a reader was not done with a block {seconds} s after the end was asked for").into());
        }
        Ok(())
    }
}

fn seqpacket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags | SocketFlags::CLOEXEC, None)?)
}

/// What has a path, itself and not what it leads to.
fn what_has(path: &Path) -> Option<Identity> {
    std::fs::symlink_metadata(path).ok().map(|found| Identity::of(&found))
}

fn is_served(path: &Path) -> io::Result<bool> {
    let connected = unix_path::connect(seqpacket(SocketFlags::empty())?, path);
    Ok(connected.map_or_else(|error| error.kind() != io::ErrorKind::ConnectionRefused, |()| true))
}

impl Sink<Block> for ShareSink {
    fn write(&mut self, block: &Block) -> Result {
        self.accept(block)?;
        self.tell(&pair(block.data.offset(), block.data.len() as u64))?;
        self.written += block.data.len() as u64;
        Ok(())
    }

    fn finish(&mut self, end: End) -> Result {
        self.tell(&pair(u64::from(end.complete), 0))
    }

    fn keeps(&self) -> bool {
        false
    }

    fn intact(&self) -> u64 {
        self.written
    }

    fn files(&self) -> Option<&Parts> {
        None
    }
}

impl Drop for ShareSink {
    fn drop(&mut self) {
        // Others may have put something else there.
        if what_has(&self.path) == self.made {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
