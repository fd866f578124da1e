//! What TCP reports of a connection.

use std::io;
use std::os::fd::AsFd;

use crate::sockopt;

/// struct tcp_info of Linux, as far as it is used.
#[repr(C)]
pub(crate) struct Info {
    /// RFC 9293, 3.3.2, as Linux numbers them.
    pub state: u8,
    _others: [u8; 99],
    /// Segments that were sent again.
    pub retransmissions: u32,
    _more: [u8; 24],
    /// FIN counts as one.
    pub bytes_received: u64,
}

impl Info {
    /// # Errors
    /// It is not a connection of TCP.
    pub fn of(socket: &impl AsFd) -> io::Result<Info> {
        let mut info = Info { state: 0, _others: [0; 99], retransmissions: 0, _more: [0; 24], bytes_received: 0 };
        sockopt::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info, "the state of a connection")?;
        Ok(info)
    }
}
