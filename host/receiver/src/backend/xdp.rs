//! AF_XDP: data of opened FEBs is steered by an XDP program (xdp/steer.bpf.c) to sockets of this program,
//! one a receive queue, past the kernel's network stack. Zero-copy where the network driver has it. All other
//! frames come through [`Packet`] as usual: of FEBs that nobody opened, and with responses, which other programs
//! may wait for too.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use fadelink_wire::MacAddr;
use libbpf_rs::{libbpf_sys, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};

use super::packet::Packet;
use super::{Backend, Losses, Send, BATCH};
use crate::interface::explain;
use crate::sockopt;

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.bpf.o"));

/// A frame of 8 KiB lies in three chunks: a chunk is at most a page.
const CHUNK: usize = 4096;
/// Chunks for reception, and for frames to send. Powers of two.
const RX_CHUNKS: usize = 4096;
const TX_CHUNKS: usize = 256;
/// ACKs that wait, at most, for the one call that sends them; they are of frames that came together.
const ACK_BATCH: usize = 8;
/// Longest frame that is put together.
const LONGEST: usize = 9216;
/// How long a call looks for frames itself, with busy polling.
const BUSY_POLL_US: libc::c_int = 50;
const BUSY_POLL_BUDGET: libc::c_int = 64;

/// A ring shared with the kernel: descriptors and two indices that run freely.
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    descriptors: NonNull<T>,
    mask: u32,
    mapping: NonNull<u8>,
    bytes: usize,
}

impl<T: Copy> Ring<T> {
    fn map(socket: &OwnedFd, offset: &libc::xdp_ring_offset, size: usize, page: libc::off_t) -> io::Result<Ring<T>> {
        let bytes = offset.desc as usize + size * size_of::<T>();
        // SAFETY: a plain system call whose result is checked; the offsets are the kernel's own, inside it.
        unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, socket.as_raw_fd(), page);
            if at == libc::MAP_FAILED {
                return Err(explain("mapping an AF_XDP ring"));
            }
            let mapping = NonNull::new(at.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
            Ok(Ring {
                producer: mapping.add(offset.producer as usize).cast(),
                consumer: mapping.add(offset.consumer as usize).cast(),
                flags: mapping.add(offset.flags as usize).cast(),
                descriptors: mapping.add(offset.desc as usize).cast(),
                mask: size as u32 - 1,
                mapping,
                bytes,
            })
        }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: lies in the mapping, which lives as long as this.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    /// The kernel sleeps and wants a call.
    fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Next entry that the kernel has written, if there is one. It is given back by [`Self::consumed`].
    fn peek(&self, ahead: u32) -> Option<T> {
        let at = self.consumer().load(Ordering::Relaxed).wrapping_add(ahead);
        if at == self.producer().load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the index is masked, and the kernel does not write this entry until it is consumed.
        Some(unsafe { self.descriptors.add((at & self.mask) as usize).read() })
    }

    fn consumed(&self, count: u32) {
        let at = self.consumer().load(Ordering::Relaxed);
        self.consumer().store(at.wrapping_add(count), Ordering::Release);
    }

    /// Writes an entry for the kernel. The caller knows that there is room.
    fn push(&self, entry: T) {
        let at = self.producer().load(Ordering::Relaxed);
        // SAFETY: the index is masked, and the kernel does not read this entry before the store below.
        unsafe { self.descriptors.add((at & self.mask) as usize).write(entry) };
        self.producer().store(at.wrapping_add(1), Ordering::Release);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.bytes) };
    }
}

/// Memory that frames lie in.
struct Umem {
    base: NonNull<u8>,
    bytes: usize,
}

impl Umem {
    fn new(bytes: usize) -> io::Result<Umem> {
        // SAFETY: a plain system call; the result is checked.
        let at = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0)
        };
        if at == libc::MAP_FAILED {
            return Err(explain("memory for AF_XDP"));
        }
        Ok(Umem { base: NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes })
    }

    /// # Safety
    /// The kernel must not own the bytes.
    unsafe fn slice(&self, at: u64, len: usize) -> &[u8] {
        assert!(at as usize + len <= self.bytes, "the kernel's descriptor lies inside the memory");
        // SAFETY: inside the mapping; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at as usize), len) }
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the socket is closed before, see the order of fields.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// What comes in.
struct Incoming {
    rx: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    /// A frame in several chunks is put together here.
    scratch: Box<[u8; LONGEST]>,
    /// Frames that the kernel had dropped when it was asked last.
    dropped: u64,
}

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

/// The socket of one receive queue. Fields are dropped in order: the rings and the socket before the memory.
struct Queue {
    incoming: Incoming,
    outgoing: Outgoing,
    socket: OwnedFd,
    umem: Umem,
    zero_copy: bool,
}

// SAFETY: the mappings belong to this value and are not tied to a thread.
unsafe impl std::marker::Send for Queue {}

fn ask<T>(socket: &OwnedFd, option: libc::c_int, value: &mut T) -> io::Result<()> {
    sockopt::get(socket, libc::SOL_XDP, option, value, "asking an AF_XDP socket")
}

impl Queue {
    fn open(interface: u32, queue: u32, busy_poll: bool) -> io::Result<Queue> {
        // SAFETY: a plain system call; the descriptor is checked and owned.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(explain("AF_XDP socket"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        let umem = Umem::new((RX_CHUNKS + TX_CHUNKS) * CHUNK)?;
        // SAFETY: an all-zero registration is valid but for the fields that are set.
        let mut register: libc::xdp_umem_reg = unsafe { zeroed() };
        register.addr = umem.base.as_ptr() as u64;
        register.len = umem.bytes as u64;
        register.chunk_size = CHUNK as u32;
        sockopt::set(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &register, "memory for AF_XDP")?;
        for (option, size) in [
            (libc::XDP_UMEM_FILL_RING, RX_CHUNKS),
            (libc::XDP_UMEM_COMPLETION_RING, TX_CHUNKS),
            (libc::XDP_RX_RING, RX_CHUNKS),
            (libc::XDP_TX_RING, TX_CHUNKS),
        ] {
            sockopt::set(&socket, libc::SOL_XDP, option, &(size as libc::c_int), "AF_XDP ring")?;
        }
        // SAFETY: all-zero offsets are valid.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
        ask(&socket, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        let rx = Ring::map(&socket, &offsets.rx, RX_CHUNKS, libc::XDP_PGOFF_RX_RING)?;
        let tx = Ring::map(&socket, &offsets.tx, TX_CHUNKS, libc::XDP_PGOFF_TX_RING)?;
        let fill = Ring::map(&socket, &offsets.fr, RX_CHUNKS, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t)?;
        let completion =
            Ring::map(&socket, &offsets.cr, TX_CHUNKS, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t)?;
        (0..RX_CHUNKS).for_each(|chunk| fill.push((chunk * CHUNK) as u64));
        let free = (0..TX_CHUNKS).map(|chunk| ((RX_CHUNKS + chunk) * CHUNK) as u64).collect();
        if busy_poll {
            let what = "busy polling (Linux 5.11 or newer, CAP_NET_ADMIN)";
            sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, &1, what)?;
            sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &BUSY_POLL_US, what)?;
            sockopt::set(&socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, &BUSY_POLL_BUDGET, what)?;
        }
        bind(&socket, interface, queue)?;
        let mut options: libc::xdp_options = libc::xdp_options { flags: 0 };
        ask(&socket, libc::XDP_OPTIONS, &mut options)?;
        let zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        let incoming = Incoming { rx, fill, scratch: Box::new([0; LONGEST]), dropped: 0 };
        let (memory, fd) = (umem.base, socket.as_raw_fd());
        let outgoing = Outgoing { tx, completion, socket: fd, memory, free, waiting: 0, errors: 0 };
        Ok(Queue { incoming, outgoing, socket, umem, zero_copy })
    }

    /// Hands the next whole frame to `handler`, with a way to send; tells if there was one.
    fn receive_one(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> bool {
        let Incoming { rx, fill, scratch, .. } = &mut self.incoming;
        let outgoing = &mut self.outgoing;
        let (mut chunks, mut len) = (0, 0);
        loop {
            // Of a frame in several chunks the rest may not be there yet; it is looked at again then.
            let Some(desc) = rx.peek(chunks) else { return false };
            // SAFETY: the chunk is ours until it is in the fill ring again.
            let part = unsafe { self.umem.slice(desc.addr, desc.len as usize) };
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

/// Binds to a receive queue: zero-copy if the driver has it.
fn bind(socket: &OwnedFd, interface: u32, queue: u32) -> io::Result<()> {
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for mode in [libc::XDP_ZEROCOPY, libc::XDP_COPY] {
        // SAFETY: an all-zero address is valid, and its size is given.
        let result = unsafe {
            let mut address: libc::sockaddr_xdp = zeroed();
            address.sxdp_family = libc::AF_XDP as u16;
            address.sxdp_flags = mode | libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG;
            address.sxdp_ifindex = interface;
            address.sxdp_queue_id = queue;
            let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
        };
        if result == 0 {
            return Ok(());
        }
        last = io::Error::last_os_error();
    }
    let hint = match last.raw_os_error() {
        Some(libc::EBUSY) => "; another program has an AF_XDP socket there",
        Some(libc::EINVAL) => "; frames of 8 KiB need Linux 6.6 or newer",
        _ => "",
    };
    Err(io::Error::new(last.kind(), format!("AF_XDP socket on queue {queue}: {last}{hint}")))
}

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

/// AF_XDP on all receive queues of one interface.
pub struct Xdp {
    queues: Vec<Queue>,
    febs: MapHandle,
    #[allow(dead_code)]
    link: OwnedFd,
    #[allow(dead_code)]
    object: Object,
    /// Everything that is not steered.
    others: Packet,
    epoll: OwnedFd,
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
        let object = object.load().map_err(bpf_error("loading the XDP program"))?;
        let map = |wanted: &str| {
            let map = object.maps().find(|map| map.name() == wanted).ok_or(io::ErrorKind::NotFound)?;
            MapHandle::try_from(&map).map_err(bpf_error(wanted))
        };
        let (febs, sockets) = (map("febs")?, map("sockets")?);
        let queues = (0..receive_queues(name))
            .map(|queue| Queue::open(others.index(), queue, busy_poll))
            .collect::<io::Result<Vec<_>>>()?;
        for (index, queue) in (0u32..).zip(&queues) {
            let fd = queue.socket.as_raw_fd() as u32;
            sockets
                .update(&index.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
                .map_err(bpf_error("AF_XDP socket"))?;
        }
        let program = object.progs().next().ok_or(io::ErrorKind::NotFound)?;
        let link = attach(program.as_fd(), others.index())?;
        // SAFETY: plain system calls; results are checked.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(explain("epoll"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        for fd in queues.iter().map(|queue| queue.socket.as_fd()).chain([others.fd()]) {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: live descriptors and a live event.
            if unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event) } < 0 {
                return Err(explain("epoll"));
            }
        }
        Ok(Xdp { queues, febs, link, object, others, epoll })
    }

    /// True if the network driver writes frames into this program's memory itself.
    pub fn is_zero_copy(&self) -> bool {
        self.queues.iter().all(|queue| queue.zero_copy)
    }

    fn keys(&self, feb: MacAddr) -> impl Iterator<Item = ([u8; 8], u32)> {
        (0..self.queues.len() as u32).map(move |queue| {
            let mut key = [0; 8];
            key[..6].copy_from_slice(&feb.0);
            key[6..].copy_from_slice(&(queue as u16).to_ne_bytes());
            (key, queue)
        })
    }
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

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize> {
        let mut frames = 0;
        for queue in &mut self.queues {
            for _ in 0..BATCH {
                if !queue.receive_one(handler) {
                    break;
                }
                frames += 1;
            }
            // No ACK waits for frames that are not here yet.
            queue.outgoing.flush();
            if queue.incoming.fill.needs_wakeup() {
                // SAFETY: a call without data, which wakes the card's reception.
                unsafe {
                    let (socket, flags) = (queue.socket.as_raw_fd(), libc::MSG_DONTWAIT);
                    libc::recvfrom(socket, std::ptr::null_mut(), 0, flags, std::ptr::null_mut(), std::ptr::null_mut());
                }
            }
        }
        // Asks for the state of the interface only when there is time.
        Ok(if frames == 0 { self.others.receive(handler)? } else { frames + self.others.take(handler) })
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.others.send(frame)
    }

    fn losses(&mut self) -> Losses {
        let mut losses = self.others.losses();
        for queue in &mut self.queues {
            // SAFETY: all-zero statistics are valid.
            let mut statistics: libc::xdp_statistics = unsafe { zeroed() };
            if ask(&queue.socket, libc::XDP_STATISTICS, &mut statistics).is_ok() {
                let total = statistics.rx_dropped + statistics.rx_ring_full;
                losses.received += total - std::mem::replace(&mut queue.incoming.dropped, total);
            }
            losses.sent += std::mem::take(&mut queue.outgoing.errors);
        }
        losses
    }

    fn opened(&mut self, feb: MacAddr) -> io::Result<()> {
        for (key, queue) in self.keys(feb) {
            self.febs
                .update(&key, &queue.to_ne_bytes(), MapFlags::ANY)
                .map_err(bpf_error("steering the frames of a FEB"))?;
        }
        Ok(())
    }

    fn closed(&mut self, feb: MacAddr) {
        for (key, _) in self.keys(feb) {
            // It is there, for `opened` has put it there.
            let _ = self.febs.delete(&key);
        }
    }
}
