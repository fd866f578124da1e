//! One receive queue of an interface: the memory of its frames, the rings for free memory and for answers, and a
//! socket for each FEB that sends to it.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use fadelink_wire::MacAddr;
use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};

use super::ring::Ring;
use crate::backend::{Losses, Send, BATCH};
use crate::fork::Kept;
use crate::interface::explained;
use crate::mapping::Mapping;
use crate::sockopt;

/// A frame of 8 KiB lies in three chunks: a chunk is at most a page.
const CHUNK: usize = 4096;
/// Chunks for reception, and for frames to send. Powers of two.
const RX_CHUNKS: usize = 4096;
const TX_CHUNKS: usize = 256;
/// Chunks that wait for the reader of one FEB, at most: those of some hundred frames, more than a window.
const FEB_CHUNKS: usize = 1024;
/// ACKs that wait, at most, for the one call that sends them; they are of frames that came together.
const ACK_BATCH: usize = 8;
/// Longest frame that is put together.
const LONGEST: usize = 9216;
/// How long a queue that is taken is tried again, and how often: the kernel frees it a moment after its owner has ended.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(10);
/// How long a call looks for frames itself, with busy polling.
const BUSY_POLL_US: libc::c_int = 50;
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// What goes out: answers wait in the ring until one call sends them.
struct Outgoing {
    tx: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    socket: RawFd,
    memory: NonNull<u8>,
    free: Vec<u64>,
    waiting: usize,
    errors: u64,
}

/// The socket that the frames of one FEB are steered to.
struct FebSocket {
    feb: MacAddr,
    /// Its index in the map of sockets.
    index: u32,
    rx: Ring<libc::xdp_desc>,
    /// Frames that the kernel had dropped when it was asked last.
    dropped: u64,
    socket: Kept<OwnedFd>,
}

/// A receive queue. Fields are dropped in order: the rings and the sockets before the memory.
pub(super) struct Queue {
    febs: Vec<FebSocket>,
    /// Of FEBs that were closed since the last clean-up, and before: a frame may be on its way to the first.
    retired: Vec<FebSocket>,
    cooled: Vec<FebSocket>,
    fill: Ring<u64>,
    /// A frame in several chunks is put together here.
    scratch: Box<[u8; LONGEST]>,
    outgoing: Outgoing,
    /// Owns the memory; sends.
    socket: Kept<OwnedFd>,
    umem: Mapping,
    zero_copy: bool,
    interface: u32,
    number: u32,
    busy_poll: bool,
}

// SAFETY: the mappings belong to this value and are not tied to a thread.
unsafe impl std::marker::Send for Queue {}

fn ask<T>(socket: &OwnedFd, option: libc::c_int, value: &mut T) -> io::Result<()> {
    sockopt::get(socket, libc::SOL_XDP, option, value, "asking an AF_XDP socket")
}

fn open_socket(busy_poll: bool) -> io::Result<Kept<OwnedFd>> {
    let family = AddressFamily::from_raw(libc::AF_XDP as u16);
    let socket = Kept::open(|| socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None))
        .map_err(|error| explained(error.into(), "AF_XDP socket"))?;
    if busy_poll {
        let what = "busy polling (Linux 5.11 or newer, CAP_NET_ADMIN)";
        sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, &1, what)?;
        sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &BUSY_POLL_US, what)?;
        sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, &BUSY_POLL_BUDGET, what)?;
    }
    Ok(socket)
}

fn set_ring(socket: &OwnedFd, option: libc::c_int, size: usize) -> io::Result<()> {
    sockopt::set(socket, libc::SOL_XDP, option, &(size as libc::c_int), "AF_XDP ring")
}

fn ring_offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero offsets are valid.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    ask(socket, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

impl Queue {
    pub(super) fn open(interface: u32, number: u32, busy_poll: bool) -> io::Result<Queue> {
        let socket = open_socket(busy_poll)?;
        let umem = Mapping::anonymous((RX_CHUNKS + TX_CHUNKS) * CHUNK)
            .and_then(Mapping::alone)
            .map_err(|error| explained(error, "memory for AF_XDP"))?;
        // SAFETY: an all-zero registration is valid but for the fields that are set.
        let mut register: libc::xdp_umem_reg = unsafe { zeroed() };
        register.addr = umem.base().as_ptr() as u64;
        register.len = umem.bytes() as u64;
        register.chunk_size = CHUNK as u32;
        sockopt::set(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &register, "memory for AF_XDP")?;
        set_ring(&socket, libc::XDP_UMEM_FILL_RING, RX_CHUNKS)?;
        set_ring(&socket, libc::XDP_UMEM_COMPLETION_RING, TX_CHUNKS)?;
        set_ring(&socket, libc::XDP_TX_RING, TX_CHUNKS)?;
        let offsets = ring_offsets(&socket)?;
        let tx = Ring::map(&socket, &offsets.tx, TX_CHUNKS, libc::XDP_PGOFF_TX_RING)?;
        let fill = Ring::map(&socket, &offsets.fr, RX_CHUNKS, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?;
        let completion =
            Ring::map(&socket, &offsets.cr, TX_CHUNKS, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?;
        (0..RX_CHUNKS).for_each(|chunk| fill.push((chunk * CHUNK) as u64));
        let free = (0..TX_CHUNKS).map(|chunk| ((RX_CHUNKS + chunk) * CHUNK) as u64).collect();
        bind_owner(&socket, interface, number)?;
        let mut options: libc::xdp_options = libc::xdp_options { flags: 0 };
        ask(&socket, libc::XDP_OPTIONS, &mut options)?;
        let zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        let (memory, fd) = (umem.base(), socket.as_raw_fd());
        let outgoing = Outgoing { tx, completion, socket: fd, memory, free, waiting: 0, errors: 0 };
        let scratch = Box::new([0; LONGEST]);
        let (febs, retired, cooled) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Queue {
            febs,
            retired,
            cooled,
            fill,
            scratch,
            outgoing,
            socket,
            umem,
            zero_copy,
            interface,
            number,
            busy_poll,
        })
    }

    /// True if the network driver writes frames into the memory itself.
    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Makes the socket of a FEB, which is `index` in the map of sockets. It shares the memory.
    pub(super) fn add(&mut self, feb: MacAddr, index: u32) -> io::Result<BorrowedFd<'_>> {
        let socket = open_socket(self.busy_poll)?;
        set_ring(&socket, libc::XDP_RX_RING, FEB_CHUNKS)?;
        let rx = Ring::map(&socket, &ring_offsets(&socket)?.rx, FEB_CHUNKS, libc::XDP_PGOFF_RX_RING)?;
        // How it is used is the owner's, so no flag is given.
        let owner = self.socket.as_raw_fd() as u32;
        bind(&socket, self.interface, self.number, libc::XDP_SHARED_UMEM, owner)
            .map_err(|error| io::Error::new(error.kind(), format!("AF_XDP socket of FEB {feb}: {error}")))?;
        self.febs.push(FebSocket { feb, index, rx, dropped: 0, socket });
        Ok(self.febs[self.febs.len() - 1].socket.as_fd())
    }

    /// Nothing is steered to the FEB's socket any more. It is closed by [`Self::clean_up`].
    pub(super) fn remove(&mut self, feb: MacAddr) {
        self.retired.extend(self.febs.extract_if(.., |socket| socket.feb == feb));
    }

    /// Closes the sockets that were removed before the last call, and takes their memory back; their indices. Between
    /// two calls there must be time for a frame that was on its way.
    pub(super) fn clean_up(&mut self) -> Vec<u32> {
        let clean_up = |socket: FebSocket| {
            while let Some(desc) = socket.rx.peek(0) {
                self.fill.push(desc.addr & !(CHUNK as u64 - 1));
                socket.rx.consumed(1);
            }
            socket.index
        };
        let indices = self.cooled.drain(..).map(clean_up).collect();
        self.cooled.append(&mut self.retired);
        indices
    }

    /// Hands frames that wait to `handler`, of each FEB at most a batch; tells how many.
    pub(super) fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> usize {
        let mut frames = 0;
        for at in 0..self.febs.len() {
            for _ in 0..BATCH {
                if !self.receive_one(at, handler) {
                    break;
                }
                frames += 1;
            }
        }
        // No ACK waits for frames that are not here yet.
        self.outgoing.flush();
        if let Some(FebSocket { socket, .. }) = self.febs.first().filter(|_| self.fill.needs_wakeup()) {
            // SAFETY: a call without data, which wakes the card's reception of this queue for all its sockets.
            unsafe {
                let (socket, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT);
                libc::recvfrom(socket, std::ptr::null_mut(), 0, flags, std::ptr::null_mut(), std::ptr::null_mut());
            }
        }
        frames
    }

    /// Hands the next whole frame of a FEB to `handler`, with a way to send; tells if there was one.
    fn receive_one(&mut self, at: usize, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> bool {
        let Queue { febs, fill, scratch, outgoing, umem, .. } = self;
        let rx = &febs[at].rx;
        let (mut chunks, mut len) = (0, 0);
        loop {
            // Of a frame in several chunks the rest may not be there yet; it is looked at again then.
            let Some(desc) = rx.peek(chunks) else { return false };
            // SAFETY: the chunk is ours until it is in the fill ring again.
            let part = unsafe { umem.slice(desc.addr as usize, desc.len as usize) };
            chunks += 1;
            let is_end = desc.options & libc::XDP_PKT_CONTD == 0;
            if is_end && chunks == 1 {
                handler(part, &mut |answer| outgoing.push(answer));
                break;
            }
            let end = (len + part.len()).min(LONGEST);
            scratch[len..end].copy_from_slice(&part[..end - len]);
            len = end;
            if is_end {
                handler(&scratch[..len], &mut |answer| outgoing.push(answer));
                break;
            }
        }
        for i in 0..chunks {
            if let Some(desc) = rx.peek(i) {
                fill.push(desc.addr & !(CHUNK as u64 - 1));
            }
        }
        rx.consumed(chunks);
        true
    }

    /// Adds the frames lost since the last call.
    pub(super) fn losses(&mut self, losses: &mut Losses) {
        for feb in &mut self.febs {
            // SAFETY: all-zero statistics are valid.
            let mut statistics: libc::xdp_statistics = unsafe { zeroed() };
            if ask(&feb.socket, libc::XDP_STATISTICS, &mut statistics).is_ok() {
                let total = statistics.rx_dropped + statistics.rx_ring_full;
                losses.received += total - std::mem::replace(&mut feb.dropped, total);
            }
        }
        losses.sent += std::mem::take(&mut self.outgoing.errors);
    }
}

impl Outgoing {
    /// Puts a frame into the send ring; several that came together leave by one call.
    fn push(&mut self, frame: &[u8]) {
        while let Some(done) = self.completion.peek(0) {
            self.free.push(done);
            self.completion.consumed(1);
        }
        let Some(addr) = self.free.pop().filter(|_| frame.len() <= CHUNK) else {
            self.errors += 1;
            self.flush();
            return;
        };
        // SAFETY: a free chunk is ours, and it is as long as this.
        unsafe {
            let to = self.memory.as_ptr().add(addr as usize);
            std::ptr::copy_nonoverlapping(frame.as_ptr(), to, frame.len());
        }
        self.tx.push(libc::xdp_desc { addr, len: frame.len() as u32, options: 0 });
        self.waiting += 1;
        if self.waiting >= ACK_BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.waiting == 0 {
            return;
        }
        self.waiting = 0;
        if self.tx.needs_wakeup() {
            // SAFETY: a call without data: the kernel looks into the ring.
            let sent =
                unsafe { libc::sendto(self.socket, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
            // A busy card takes them with the next call.
            let busy = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS];
            if sent < 0 && !busy.contains(&io::Error::last_os_error().raw_os_error().unwrap_or(0)) {
                self.errors += 1;
            }
        }
    }
}

fn bind(socket: &OwnedFd, interface: u32, queue: u32, flags: u16, shared_with: u32) -> io::Result<()> {
    // SAFETY: an all-zero address is valid, and its size is given.
    let result = unsafe {
        let mut address: libc::sockaddr_xdp = zeroed();
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = flags;
        address.sxdp_ifindex = interface;
        address.sxdp_queue_id = queue;
        address.sxdp_shared_umem_fd = shared_with;
        let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Binds the owner of the memory to a receive queue: zero-copy if the driver has it.
fn bind_owner(socket: &OwnedFd, interface: u32, queue: u32) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let bind = |mode| bind(socket, interface, queue, mode | libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG, 0);
    let is_busy = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
    let last = loop {
        let bound = match bind(libc::XDP_ZEROCOPY) {
            Err(error) if !is_busy(&error) => bind(libc::XDP_COPY),
            bound => bound,
        };
        match bound {
            Ok(()) => return Ok(()),
            Err(error) if is_busy(&error) && Instant::now() < end => std::thread::sleep(INTERVAL),
            Err(error) => break error,
        }
    };
    let hint = match last.raw_os_error() {
        Some(libc::EBUSY) => "; another program has an AF_XDP socket there",
        Some(libc::EINVAL) => "; frames of 8 KiB need Linux 6.6 or newer",
        _ => "",
    };
    Err(io::Error::new(last.kind(), format!("AF_XDP socket on queue {queue}: {last}{hint}")))
}
