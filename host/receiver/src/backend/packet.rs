//! AF_PACKET with a memory-mapped ring (TPACKET_V2): no kernel module, any network interface.
//!
//! Version 2 delivers each frame at once. Version 3 collects frames in blocks, and an ACK would wait for the next
//! frame or a timer.

use std::io::{self, IoSlice};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use fadelink_wire::fade10g::{ETHERTYPE, REQUEST_LEN};
use fadelink_wire::MacAddr;
use rustix::net::{
    sendmmsg, socket_with, AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType,
};

use super::{Backend, Losses, Send, BATCH};
use crate::fork::Kept;
use crate::interface::{explain, explained, Interface, Obstacle};
use crate::mapping::Mapping;
use crate::sockopt;

/// The ring is made of blocks that hold whole frames.
const BLOCK_BYTES: usize = 65536;
const BLOCKS: usize = 256;
/// Blocks of a FEB's own ring: frames enough for four windows, few enough to stay in the processor's cache.
const BLOCKS_OF_ONE: usize = 37;
/// Place of one frame: any of MTU 9000 with what the kernel puts before it, a multiple of 16.
const FRAME_BYTES: usize = 9360;
const FRAMES_IN_BLOCK: usize = BLOCK_BYTES / FRAME_BYTES;

/// A packet socket on one interface.
#[derive(Debug)]
pub struct Packet {
    interface: Interface,
    transmitter: Transmitter,
    ring: Mapping,
    frames: usize,
    next_frame: usize,
    /// FEBs whose frames have a socket of their own.
    elsewhere: Vec<MacAddr>,
    /// The interface has, and nobody was told yet.
    went_down: bool,
}

/// Answers that wait, at most, for the one call that sends them; they are to frames that came together.
const ANSWERS: usize = 4;

#[derive(Debug)]
struct Transmitter {
    socket: Kept<OwnedFd>,
    errors: u64,
    answers: [[u8; REQUEST_LEN]; ANSWERS],
    waiting: usize,
}

impl Packet {
    /// Opens interface `name`.
    ///
    /// # Errors
    /// The interface does not exist, is down, is not Ethernet, has too small an MTU, or the program may
    /// not open it; the message says what to do.
    pub fn open(name: &str) -> io::Result<Packet> {
        Packet::on(Interface::open(name)?, BLOCKS, None)
    }

    /// A ring of `blocks`, for the frames of one FEB or of all.
    fn on(interface: Interface, blocks: usize, feb: Option<MacAddr>) -> io::Result<Packet> {
        let name = interface.name.as_str();
        let frames = blocks * FRAMES_IN_BLOCK;
        // Protocol 0 until the ring stands: nothing is received before.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = Kept::open(|| socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None))
            .map_err(|error| explained(error.into(), &format!("packet socket on {name}")))?;

        sockopt::set(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
            "TPACKET_V2",
        )?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: frames as u32,
        };
        sockopt::set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request, &format!("packet ring on {name}"))?;
        let ring = Mapping::shared(socket.as_fd(), 0, BLOCK_BYTES * blocks, true)
            .and_then(Mapping::alone)
            .map_err(|error| explained(error, &format!("mapping the packet ring on {name}")))?;
        let transmitter = Transmitter { socket, errors: 0, answers: [[0; REQUEST_LEN]; ANSWERS], waiting: 0 };
        let mut packet =
            Packet { interface, transmitter, ring, frames, next_frame: 0, elsewhere: Vec::new(), went_down: false };
        if let Some(feb) = feb {
            packet.filter(&[feb], true)?;
        }
        packet.bind()?;
        Ok(packet)
    }

    /// Takes the frames of `febs` alone, or those of all others.
    fn filter(&self, febs: &[MacAddr], these: bool) -> io::Result<()> {
        let step = |code: u32, jump_else: u8, value: u32| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: jump_else,
            k: value,
        };
        let take = |taken: bool| step(libc::BPF_RET | libc::BPF_K, 0, if taken { u32::MAX } else { 0 });
        let load = |size: u32, at: u32| step(libc::BPF_LD | libc::BPF_ABS | size, 0, at);
        let mut program = Vec::new();
        for MacAddr([a, b, c, d, e, f]) in febs {
            // The source: four bytes from the sixth on, then two. Where they differ the next FEB is looked at.
            program.extend([
                load(libc::BPF_W, 6),
                step(libc::BPF_JMP | libc::BPF_JEQ, 3, u32::from_be_bytes([*a, *b, *c, *d])),
                load(libc::BPF_H, 10),
                step(libc::BPF_JMP | libc::BPF_JEQ, 1, u32::from_be_bytes([0, 0, *e, *f])),
                take(these),
            ]);
        }
        program.push(take(!these));
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        let what = format!("filter on {}", self.interface.name);
        sockopt::set(&self.transmitter.socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter, &what)
    }

    fn bind(&mut self) -> io::Result<()> {
        // SAFETY: an all-zero address is a valid one, and its size is given.
        let result = unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = ETHERTYPE.to_be();
            address.sll_ifindex = self.interface.index as i32;
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            libc::bind(self.transmitter.socket.as_fd().as_raw_fd(), (&raw const address).cast(), length)
        };
        if result < 0 {
            return Err(explain(&format!("interface {}", self.interface.name)));
        }
        Ok(())
    }

    /// Hands frames that wait to `handler`, at most a batch; tells how many.
    pub(super) fn take(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> usize {
        let mut frames = 0;
        for _ in 0..BATCH {
            let place =
                self.next_frame / FRAMES_IN_BLOCK * BLOCK_BYTES + self.next_frame % FRAMES_IN_BLOCK * FRAME_BYTES;
            // SAFETY: frames lie inside the mapping. The status word is shared with the kernel, so it
            // is accessed atomically; while it says "user" the frame is ours.
            let (frame, status) = unsafe {
                let frame = self.ring.base().as_ptr().add(place).cast::<libc::tpacket2_hdr>();
                (frame, AtomicU32::from_ptr(&raw mut (*frame).tp_status))
            };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                break;
            }
            // SAFETY: the kernel has filled this frame and leaves it alone until it is given back.
            let bytes = unsafe {
                let data = frame.cast::<u8>().add(usize::from((*frame).tp_mac));
                std::slice::from_raw_parts(data, (*frame).tp_snaplen as usize)
            };
            let transmitter = &mut self.transmitter;
            handler(bytes, &mut |answer| transmitter.answer(answer));
            frames += 1;
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next_frame = (self.next_frame + 1) % self.frames;
        }
        // No ACK waits for frames that are not here yet.
        self.transmitter.flush();
        frames
    }

    /// False when the interface was removed: the kernel takes the socket off it, for ever.
    fn is_bound(&self) -> bool {
        // SAFETY: an all-zero address is a valid one, and its size is given.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            let socket = self.transmitter.socket.as_fd().as_raw_fd();
            let asked = libc::getsockname(socket, (&raw mut address).cast(), &raw mut length);
            asked == 0 && address.sll_ifindex == self.interface.index as i32
        }
    }

    /// The error that the kernel keeps for the socket. That the interface has gone down is none while it exists: the kernel binds
    /// the socket again when it is up.
    fn socket_error(&mut self) -> io::Result<()> {
        // Asking fails for a bad descriptor alone.
        let Ok(Err(error)) = rustix::net::sockopt::socket_error(self.transmitter.socket.as_fd()) else { return Ok(()) };
        let error = io::Error::from(error);
        if error.kind() == io::ErrorKind::NetworkDown {
            self.went_down = true;
            // One that was moved, or made anew, may be there again; this socket is not on it any more.
            if !self.is_bound() {
                return Err(self.interface.gone());
            }
            return self.interface.obstacle().map(drop);
        }
        Err(io::Error::new(error.kind(), format!("interface {}: {error}", self.interface.name)))
    }
}

impl Transmitter {
    /// Sends an answer, with others of its batch. It is counted if it cannot be sent: the FEB sends again what is
    /// not confirmed.
    fn answer(&mut self, frame: &[u8]) {
        let Ok(frame) = frame.try_into() else {
            let _ = self.send(frame);
            return;
        };
        self.answers[self.waiting] = frame;
        self.waiting += 1;
        if self.waiting == ANSWERS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.waiting == 0 {
            return;
        }
        let parts: [_; ANSWERS] = std::array::from_fn(|i| [IoSlice::new(&self.answers[i])]);
        let mut nothing: [SendAncillaryBuffer<'_, '_, '_>; ANSWERS] = Default::default();
        let mut controls = nothing.iter_mut();
        let mut messages = parts.each_ref().map(|part| MMsgHdr::new(part, controls.next().expect("one a part")));
        let sent = sendmmsg(&self.socket, &mut messages[..self.waiting], SendFlags::empty()).unwrap_or(0);
        self.errors += self.waiting as u64 - sent as u64;
        self.waiting = 0;
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Err(error) = rustix::net::send(&self.socket, frame, SendFlags::empty()) {
            self.errors += 1;
            return Err(error.into());
        }
        Ok(())
    }
}

impl Backend for Packet {
    fn local(&self) -> MacAddr {
        self.interface.mac
    }

    fn index(&self) -> u32 {
        self.interface.index
    }

    fn mtu(&self) -> u32 {
        self.interface.mtu
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.transmitter.socket.as_fd()
    }

    fn obstacle(&self) -> io::Result<Option<Obstacle>> {
        self.interface.obstacle()
    }

    fn went_down(&mut self) -> bool {
        std::mem::take(&mut self.went_down)
    }

    fn is_connected(&self) -> bool {
        self.interface.is_connected()
    }

    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize> {
        let frames = self.take(handler);
        if frames == 0 {
            self.socket_error()?;
        }
        Ok(frames)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.transmitter.send(frame)
    }

    fn losses(&mut self) -> Losses {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let (socket, what) = (&self.transmitter.socket, "PACKET_STATISTICS");
        // It fails for a bad descriptor alone.
        let _ = sockopt::get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics, what);
        let received = u64::from(statistics.tp_drops);
        Losses { received, sent: std::mem::take(&mut self.transmitter.errors) }
    }

    fn closed(&mut self, feb: MacAddr) {
        if let Some(at) = self.elsewhere.iter().position(|mac| *mac == feb) {
            self.elsewhere.swap_remove(at);
            // It takes more than is wanted if this fails, and then its FEB is told to be silent.
            let _ = self.filter(&self.elsewhere, false);
        }
    }

    fn split_off(&mut self, feb: MacAddr) -> io::Result<Option<Box<dyn Backend>>> {
        let socket = Packet::on(self.interface.clone(), BLOCKS_OF_ONE, Some(feb))?;
        self.elsewhere.push(feb);
        self.filter(&self.elsewhere, false)?;
        Ok(Some(Box::new(socket)))
    }
}
