//! Streams of the UDP/IP stack (docs/protocol/udp.md): reads datagrams in batches, sorts them, counts gaps.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use fadelink_wire::udp::PAYLOAD_MAX;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::sockopt;

mod order;
pub use order::{Counts, Gap, Order, Step};

/// Datagrams that one call to the kernel takes, at most. Where it takes fewer, no more were there.
pub const BATCH: usize = 64;
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
