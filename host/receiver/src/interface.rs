//! A network interface, checked before it is used.

use std::fmt;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

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

/// What keeps an interface that exists from receiving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// It was set down.
    Down,
    /// It is a port of this bridge or bond, which takes the frames that come.
    Port(String),
    /// Its MTU has become smaller.
    Mtu(u32),
    /// It has another address: the boards send to the one that it had.
    Address(MacAddr),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Down => f.write_str("is down"),
            Obstacle::Port(master) => write!(f, "is a port of {master}, which takes the frames that come"),
            Obstacle::Mtu(mtu) => write!(f, "has MTU {mtu} now, less than before"),
            Obstacle::Address(mac) => write!(f, "has another address now, {mac}"),
        }
    }
}

/// The bridge, bond or team of which the interface is a port. None: it is not one, or `sys`, where /sys is, shows the interfaces of
/// another network namespace. An interface of a VRF receives as any other.
pub fn master(sys: &Path, name: &str, index: u32) -> Option<String> {
    let class = sys.join("class/net");
    let of = |interface: &str, value: &str| std::fs::read_to_string(class.join(interface).join(value)).ok();
    if of(name, "ifindex")?.trim().parse() != Ok(index) {
        return None;
    }
    let link = std::fs::read_link(class.join(name).join("master")).ok()?;
    let master = link.file_name()?.to_str()?;
    let flags =
        of(master, "flags").and_then(|flags| u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).ok());
    // A VRF has the flags of a master that does not resolve addresses.
    let vrf = (libc::IFF_MASTER | libc::IFF_NOARP) as u32;
    flags.is_none_or(|flags| flags & vrf != vrf).then(|| master.to_owned())
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
pub fn name_of(index: u32) -> io::Result<String> {
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
        let State { is_up, mac, mtu, kind, .. } = state(&socket, name)?;
        if !is_up {
            let message = format!("interface {name} is down; set it up: ip link set {name} up");
            return Err(io::Error::new(io::ErrorKind::NetworkDown, message));
        }
        if kind != libc::ARPHRD_ETHER {
            return Err(invalid(format!(
                "interface {name} is not an Ethernet interface (type {kind}); choose one that is"
            )));
        }
        if let Some(master) = master(Path::new("/sys"), name, index) {
            return Err(invalid(format!(
                "interface {name} {}; receive from {master}, or take it out: ip link set {name} nomaster",
                Obstacle::Port(master.clone())
            )));
        }
        Ok(Interface { name: name.to_owned(), index, mac, mtu })
    }

    /// It does not exist any more.
    pub(crate) fn gone(&self) -> io::Error {
        io::Error::new(io::ErrorKind::NotFound, format!("interface {} was removed", self.name))
    }

    /// What keeps it from receiving now, though the cable may be well.
    ///
    /// # Errors
    /// It does not exist any more.
    pub fn obstacle(&self) -> io::Result<Option<Obstacle>> {
        Ok(self.look()?.1)
    }

    /// True if what is sent may be answered: nothing keeps it from receiving, and it has a carrier.
    pub fn is_connected(&self) -> bool {
        matches!(self.look(), Ok((true, None)))
    }

    /// Whether it has a carrier, and what keeps it from receiving.
    fn look(&self) -> io::Result<(bool, Option<Obstacle>)> {
        let gone = |_| self.gone();
        // It may have got another name.
        let name = name_of(self.index).map_err(gone)?;
        let State { is_up, has_carrier, mac, mtu, .. } = state(&UnixDatagram::unbound()?, &name).map_err(gone)?;
        let obstacle = match master(Path::new("/sys"), &name, self.index) {
            _ if !is_up => Some(Obstacle::Down),
            Some(master) => Some(Obstacle::Port(master)),
            None if mac != self.mac => Some(Obstacle::Address(mac)),
            None if mtu < self.mtu => Some(Obstacle::Mtu(mtu)),
            None => None,
        };
        Ok((has_carrier, obstacle))
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

/// What the kernel says of an interface.
struct State {
    is_up: bool,
    has_carrier: bool,
    mac: MacAddr,
    mtu: u32,
    /// Its kind of hardware address, `ARPHRD_*`.
    kind: u16,
}

/// Asks for it. The name is a valid one.
fn state(socket: &UnixDatagram, name: &str) -> io::Result<State> {
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
        let mtu = ask(libc::SIOCGIFMTU, "MTU")?.ifr_ifru.ifru_mtu as u32;
        let address = ask(libc::SIOCGIFHWADDR, "address")?.ifr_ifru.ifru_hwaddr;
        let [a, b, c, d, e, f, ..] = address.sa_data.map(|byte| byte as u8);
        let [is_up, has_carrier] = [libc::IFF_UP, libc::IFF_RUNNING].map(|flag| flags & flag != 0);
        Ok(State { is_up, has_carrier, mac: MacAddr([a, b, c, d, e, f]), mtu, kind: address.sa_family })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder as /sys: interface `eth1` with index 7 and its master, whose flags are these.
    fn with_master(flags: &str) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let class = sys.path().join("class/net");
        std::fs::create_dir_all(class.join("eth1")).unwrap();
        std::fs::create_dir_all(class.join("m0")).unwrap();
        std::fs::write(class.join("eth1/ifindex"), "7\n").unwrap();
        std::fs::write(class.join("m0/flags"), flags).unwrap();
        std::os::unix::fs::symlink("../m0", class.join("eth1/master")).unwrap();
        sys
    }

    #[test]
    fn a_port_of_a_bridge_or_bond_is_told_from_an_interface_of_a_vrf() {
        for (flags, is_port) in [("0x1003", true), ("0x1443", true), ("0x1002", true), ("0x4c1", false)] {
            let sys = with_master(flags);
            let found = master(sys.path(), "eth1", 7);
            assert_eq!(found.as_deref(), is_port.then_some("m0"), "{flags}");
            assert_eq!(master(sys.path(), "eth1", 8), None, "of another network namespace");
        }
        assert_eq!(master(tempfile::tempdir().unwrap().path(), "eth1", 7), None);
    }
}
