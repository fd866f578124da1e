//! AF_XDP: an XDP program (xdp/steer.bpf.c) sends the data of opened FEBs to sockets of this program, one for each
//! FEB and receive queue, past the network stack of the kernel. Zero-copy if the network driver supports it. All
//! other frames come through [`Packet`]: those of FEBs that no program opened, and those with responses, for which
//! other programs may wait.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use fadelink_wire::MacAddr;
use libbpf_rs::{libbpf_sys, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use rustix::event::epoll;

use super::packet::Packet;
use super::{Backend, Losses, Send};
use crate::fork::{Descriptors, Kept};
use crate::interface::Obstacle;

mod queue;
mod ring;

use queue::Queue;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.bpf.o"));

/// Sockets that the program can steer to; as in xdp/steer.bpf.c.
const SOCKETS: u32 = 4096;

fn bpf_error(what: &str) -> impl FnOnce(libbpf_rs::Error) -> io::Error + '_ {
    move |error| io::Error::other(format!("{what}: {error:#}"))
}

/// Attaches the program; it goes when the descriptor is closed, however the program ends.
fn attach(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for flags in [libbpf_sys::XDP_FLAGS_DRV_MODE, libbpf_sys::XDP_FLAGS_SKB_MODE] {
        // SAFETY: all-zero options are valid with their size; the descriptor is checked and owned.
        unsafe {
            let mut options: libbpf_sys::bpf_link_create_opts = zeroed();
            options.sz = size_of::<libbpf_sys::bpf_link_create_opts>() as _;
            options.flags = flags;
            let kind = libbpf_sys::BPF_XDP;
            let fd = libbpf_sys::bpf_link_create(program.as_raw_fd(), interface as i32, kind, &raw const options);
            if fd >= 0 {
                return Ok(OwnedFd::from_raw_fd(fd));
            }
            last = io::Error::from_raw_os_error(-fd);
        }
    }
    let hint = match last.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => "; another program has an XDP program there",
        Some(libc::EPERM) => "; run it as root or give it CAP_NET_ADMIN and CAP_BPF",
        _ => "",
    };
    Err(io::Error::new(last.kind(), format!("XDP program: {last}{hint}")))
}

/// The program and its maps.
struct Program(Object);

impl Descriptors for Program {
    fn descriptors(&self) -> Vec<RawFd> {
        let maps = self.0.maps().map(|map| map.as_fd().as_raw_fd());
        maps.chain(self.0.progs().map(|program| program.as_fd().as_raw_fd())).collect()
    }
}

/// AF_XDP on all receive queues of one interface.
pub struct Xdp {
    queues: Vec<Queue>,
    febs: Kept<MapHandle>,
    sockets: Kept<MapHandle>,
    /// Indices of the map of sockets that are free.
    free: Vec<u32>,
    #[allow(dead_code)]
    link: Kept<OwnedFd>,
    #[allow(dead_code)]
    object: Kept<Program>,
    /// Everything that is not steered.
    others: Packet,
    epoll: Kept<OwnedFd>,
}

// SAFETY: the BPF object is used by one thread at a time.
unsafe impl std::marker::Send for Xdp {}

fn receive_queues(interface: &str) -> u32 {
    let entries = std::fs::read_dir(Path::new("/sys/class/net").join(interface).join("queues"));
    let queues = entries.map_or(0, |entries| {
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-")).count()
    });
    queues.clamp(1, 64) as u32
}

impl Xdp {
    /// Opens interface `name`. `busy_poll`: look for frames in the program's own calls instead of waiting
    /// for interrupts.
    ///
    /// # Errors
    /// Those of [`Packet::open`]; the kernel is too old, or another program uses XDP there. The message says so.
    pub fn open(name: &str, busy_poll: bool) -> io::Result<Xdp> {
        let others = Packet::open(name)?;
        let mut open = ObjectBuilder::default();
        open.debug(false);
        let object = open.open_memory(PROGRAM).map_err(bpf_error("XDP program"))?;
        let object = Kept::open(|| object.load().map(Program).map_err(bpf_error("loading the XDP program")))?;
        let map = |wanted: &str| {
            let map = object.0.maps().find(|map| map.name() == wanted).ok_or(io::ErrorKind::NotFound)?;
            Kept::open(|| MapHandle::try_from(&map)).map_err(bpf_error(wanted))
        };
        let (febs, sockets) = (map("febs")?, map("sockets")?);
        let queues = (0..receive_queues(name))
            .map(|queue| Queue::open(others.index(), queue, busy_poll))
            .collect::<io::Result<Vec<_>>>()?;
        let program = object.0.progs().next().ok_or(io::ErrorKind::NotFound)?;
        let link = Kept::open(|| attach(program.as_fd(), others.index()))?;
        let epoll = Kept::open(|| epoll::create(epoll::CreateFlags::CLOEXEC))?;
        let free = (0..SOCKETS).rev().collect();
        let xdp = Xdp { queues, febs, sockets, free, link, object, others, epoll };
        watch(&xdp.epoll, xdp.others.fd())?;
        Ok(xdp)
    }

    /// True if the network driver writes frames into this program's memory itself.
    pub fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(Queue::is_zero_copy)
    }

    /// A socket for the FEB's frames of one receive queue.
    fn steer(&mut self, feb: MacAddr, number: usize) -> io::Result<()> {
        let full = || io::Error::new(io::ErrorKind::OutOfMemory, format!("more than {SOCKETS} AF_XDP sockets"));
        let index = self.free.pop().ok_or_else(full)?;
        let socket = self.queues[number].add(feb, index).inspect_err(|_| self.free.push(index))?;
        let fd = socket.as_raw_fd() as u32;
        watch(&self.epoll, socket)?;
        self.sockets
            .update(&index.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .map_err(bpf_error("AF_XDP socket"))?;
        self.febs
            .update(&key(feb, number), &index.to_ne_bytes(), MapFlags::ANY)
            .map_err(bpf_error("steering the frames of a FEB"))
    }
}

/// The key of the program's map: FEB and receive queue.
fn key(feb: MacAddr, queue: usize) -> [u8; 8] {
    let mut key = [0; 8];
    key[..6].copy_from_slice(&feb.0);
    key[6..].copy_from_slice(&(queue as u16).to_ne_bytes());
    key
}

fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(epoll::add(epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?)
}

impl Backend for Xdp {
    fn local(&self) -> MacAddr {
        self.others.local()
    }

    fn index(&self) -> u32 {
        self.others.index()
    }

    fn mtu(&self) -> u32 {
        self.others.mtu()
    }

    fn obstacle(&self) -> io::Result<Option<Obstacle>> {
        self.others.obstacle()
    }

    fn went_down(&mut self) -> bool {
        self.others.went_down()
    }

    fn is_connected(&self) -> bool {
        self.others.is_connected()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize> {
        let frames = self.queues.iter_mut().map(|queue| queue.receive(handler)).sum::<usize>();
        // Asks for the state of the interface only when there is time.
        Ok(if frames == 0 { self.others.receive(handler)? } else { frames + self.others.take(handler) })
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.others.send(frame)
    }

    fn losses(&mut self) -> Losses {
        let mut losses = self.others.losses();
        for queue in &mut self.queues {
            queue.losses(&mut losses);
            // Called ten times a second.
            self.free.extend(queue.clean_up());
        }
        losses
    }

    fn opened(&mut self, feb: MacAddr) -> io::Result<()> {
        let steered = (0..self.queues.len()).try_for_each(|number| self.steer(feb, number));
        if steered.is_err() {
            self.closed(feb);
        }
        steered
    }

    fn closed(&mut self, feb: MacAddr) {
        for (number, queue) in self.queues.iter_mut().enumerate() {
            // It is there if `opened` has put it there.
            let _ = self.febs.delete(&key(feb, number));
            queue.remove(feb);
        }
    }
}
