//! A network interface, checked before it is used.

use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use fadelink_wire::{ethernet, fade1, fade10g, MacAddr, Protocol};

/// An Ethernet interface that was up.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Its address.
    pub mac: MacAddr,
    /// Its MTU.
    pub mtu: u32,
}

/// Checks that data frames pass through the interface of this index: of a FEB that may speak FADE-10G, those.
///
/// # Errors
/// The MTU is too small; the message says what to do.
pub fn check_mtu(index: u32, mtu: u32, protocol: Option<Protocol>) -> Result<(), String> {
    let (frame, hint) = match protocol {
        Some(Protocol::Fade1) => (fade1::DATA_FRAME_LEN, "1500"),
        _ => (fade10g::DATA_FRAME_LEN, "9000"),
    };
    let needed = (frame - ethernet::HEADER_LEN) as u32;
    if mtu >= needed {
        return Ok(());
    }
    let name = name_of(index).unwrap_or_else(|_| "NAME".into());
    Err(format!(
        "interface {name} has MTU {mtu}, expected at least {needed} for data frames: ip link set {name} mtu {hint}"
    ))
}

/// The name of the interface with this index.
pub(crate) fn name_of(index: u32) -> io::Result<String> {
    // Any socket will do to ask.
    Ok(rustix::net::netdevice::index_to_name(&UnixDatagram::unbound()?, index)?)
}

impl Interface {
    /// Looks interface `name` up.
    ///
    /// # Errors
    /// It does not exist, is down or is not Ethernet; the message says what to do.
    pub fn open(name: &str) -> io::Result<Interface> {
        let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
        if name.contains('\0') {
            return Err(invalid(format!("interface `{name}`: expected no NUL")));
        }
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(invalid(format!("interface `{name}`: expected a name of 1 to 15 characters")));
        }
        // Any socket will do to ask.
        let socket = UnixDatagram::unbound()?;
        let index = rustix::net::netdevice::name_to_index(&socket, name).map_err(|_| {
            let message = format!("interface {name} does not exist; `ip link` lists those that do");
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        let (mac, mtu) = check(&socket, name)?;
        Ok(Interface { name: name.to_owned(), index, mac, mtu })
    }
}

/// The last error, with what was tried and what to do.
pub(crate) fn explain(what: &str) -> io::Error {
    explained(io::Error::last_os_error(), what)
}

/// An error, with what was tried and what to do.
pub(crate) fn explained(error: io::Error, what: &str) -> io::Error {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "; run it as root or give it CAP_NET_RAW",
        Some(libc::ENOMEM) => "; not enough memory for the ring",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{what}: {error}{hint}"))
}

/// Asks for the interface's address and MTU; it must be an Ethernet that is up.
fn check(socket: &UnixDatagram, name: &str) -> io::Result<(MacAddr, u32)> {
    // SAFETY: an all-zero request is valid; the name fits with its NUL; each union field is the one
    // that the ioctl has filled.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        std::ptr::copy_nonoverlapping(name.as_ptr(), request.ifr_name.as_mut_ptr().cast(), name.len());
        let mut ask = |what, label: &str| {
            if libc::ioctl(socket.as_raw_fd(), what, &raw mut request) < 0 {
                return Err(explain(&format!("{label} of interface {name}")));
            }
            Ok(request)
        };
        let flags = i32::from(ask(libc::SIOCGIFFLAGS, "flags")?.ifr_ifru.ifru_flags);
        if flags & libc::IFF_UP == 0 {
            let message = format!("interface {name} is down; set it up: ip link set {name} up");
            return Err(io::Error::new(io::ErrorKind::NetworkDown, message));
        }
        let mtu = ask(libc::SIOCGIFMTU, "MTU")?.ifr_ifru.ifru_mtu;
        let address = ask(libc::SIOCGIFHWADDR, "address")?.ifr_ifru.ifru_hwaddr;
        if address.sa_family != libc::ARPHRD_ETHER {
            let message = format!(
                "interface {name} is not an Ethernet interface (type {}); choose one that is",
                address.sa_family
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let [a, b, c, d, e, f, ..] = address.sa_data.map(|byte| byte as u8);
        Ok((MacAddr([a, b, c, d, e, f]), mtu as u32))
    }
}
