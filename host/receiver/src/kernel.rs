//! Receives through the kernel driver: `/dev/l3_fpga%d` and `/dev/l3_fpga_ctl`
//! (driver/fadelink_uapi.h, docs/driver.md).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fadelink_wire::fade10g::PACKET_BYTES;
use fadelink_wire::{Firmware, MacAddr, Protocol, Resets, WordOrder};

use crate::abi;
use crate::claim::{self, Claim, CommandClaim, Segment};
use crate::counters::{FebCounts, LinkCounts};
use crate::engine::{CommandError, Confirm, FebConfig};
use crate::fork::{Kept, Process};
use crate::holder::Holder;
use crate::interface::{check_mtu, name_of, Interface};
use crate::kind::Kind;
use crate::loan::ReadSide;
use crate::mapping::Mapping;
use crate::numbers::Numbers;
use crate::shared::{Ending, Phase};
use crate::source::{Command, Commander, Error, FebSource, Source, DEFAULT_RETRIES};

/// The driver's own limit of a ring.
const MAX_RING_PACKETS: u64 = 1 << 17;
/// Limits of the driver on a command.
const MAX_RETRIES: u32 = 1000;
const MAX_TIMEOUT_MS: u128 = 600_000;
/// Most devices that a driver has.
const MAX_DEVICES: u32 = 64;
const CONTROL: &str = "/dev/l3_fpga_ctl";

/// An ioctl whose argument is a number. A signal does not end it.
fn call(file: &File, number: u64, argument: u64) -> io::Result<u64> {
    loop {
        // SAFETY: the driver takes the argument as a number, or as a pointer that `call_with` vouches for.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), number as libc::Ioctl, argument) };
        if result >= 0 {
            return Ok(result as u64);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// An ioctl whose argument is the structure that its number was made for.
fn call_with<T>(file: &File, number: u64, argument: &mut T) -> io::Result<u64> {
    debug_assert_eq!(number >> 16 & 0x3fff, size_of::<T>() as u64);
    call(file, number, (argument as *mut T) as u64)
}

fn slave_id(interface: &Interface, mac: MacAddr) -> abi::SlaveId {
    let mut name = [0; 16];
    let current = current_name(interface);
    name[..current.len()].copy_from_slice(current.as_bytes());
    abi::SlaveId { mac: mac.0, name }
}

/// It may have another name than when it was opened.
fn current_name(interface: &Interface) -> String {
    name_of(interface.index).unwrap_or_else(|_| interface.name.clone())
}

/// What the driver says of an interface, and what to do.
fn of_interface(interface: &Interface, error: &io::Error) -> String {
    let name = current_name(interface);
    match error.raw_os_error() {
        Some(libc::ENETDOWN) => format!("interface {name} is down; set it up: ip link set {name} up"),
        Some(libc::EMEDIUMTYPE) => format!("interface {name} is not an Ethernet interface; choose one that is"),
        Some(libc::ENODEV) => format!("interface {name} was removed, or moved to another network namespace"),
        _ => format!("interface {name}: {error}"),
    }
}

/// The driver, on one interface.
pub(crate) struct Kernel {
    interface: Arc<Interface>,
    place: Segment,
    control: Arc<Kept<File>>,
    /// The driver counts since it was loaded.
    before: LinkCounts,
}

fn link_counts(control: &File) -> LinkCounts {
    let mut now = abi::LinkStatistics::default();
    if call_with(control, abi::GETLINK, &mut now).is_err() {
        return LinkCounts::default();
    }
    LinkCounts {
        frames: now.frames,
        other_destination: now.other_destination,
        truncated: now.truncated,
        wrong_version: now.wrong_version,
        wrong_type: now.wrong_type,
        unknown_feb: now.unknown_feb,
        resets: now.resets,
        kernel_drops: now.no_memory,
        send_errors: now.send_errors,
        ..LinkCounts::default()
    }
}

impl Kernel {
    pub(crate) fn open(interface: &str) -> io::Result<Kernel> {
        let interface = Arc::new(Interface::open(interface)?);
        let control = Kept::open(|| OpenOptions::new().read(true).write(true).open(CONTROL)).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => "the kernel driver is not loaded: modprobe fadelink (docs/driver.md)".into(),
                _ => format!("{error}; run as root or give your group access to /dev/l3_fpga*"),
            };
            io::Error::new(error.kind(), format!("{CONTROL}: {hint}"))
        })?;
        let before = link_counts(&control);
        let place = Segment::new(interface.index);
        Ok(Kernel { interface, place, control: Arc::new(control), before })
    }

    fn commands(&self, mac: MacAddr) -> Arc<KernelCommands> {
        let numbers = Mutex::new(Numbers::of(self.interface.index, mac));
        let (interface, control) = (self.interface.clone(), self.control.clone());
        Arc::new(KernelCommands { mac, interface, place: self.place, control, numbers, process: Process::this() })
    }
}

/// A device that nobody has.
fn free_device() -> io::Result<(String, Kept<File>)> {
    for number in 0..MAX_DEVICES {
        let path = format!("/dev/l3_fpga{number}");
        match Kept::open(|| OpenOptions::new().read(true).write(true).open(&path)) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message =
                    format!("all {number} devices of the kernel driver are in use; load it with a larger max_slaves");
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
            }
            Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        format!("all {MAX_DEVICES} devices of the kernel driver are in use"),
    ))
}

impl Source for Kernel {
    fn local(&self) -> MacAddr {
        self.interface.mac
    }

    fn counters(&self) -> LinkCounts {
        link_counts(&self.control).since(&self.before)
    }

    fn failure(&self) -> Option<String> {
        // One that is down may come up again.
        name_of(self.interface.index).err().map(|_| format!("interface {} was removed", self.interface.name))
    }

    fn open(&self, mac: MacAddr, config: FebConfig) -> Result<Box<dyn FebSource>, Error> {
        if config.confirm == Confirm::Released {
            return Err(Error::Config("confirmation of released data: not with the kernel driver".into()));
        }
        if config.ring_packets > MAX_RING_PACKETS {
            let message = format!(
                "ring of {} packets: expected at most {MAX_RING_PACKETS} with the kernel driver",
                config.ring_packets
            );
            return Err(Error::Config(message));
        }
        check_mtu(self.interface.index, self.interface.mtu, config.protocol()).map_err(Error::Config)?;
        // Programs that receive by themselves see by this that the FEB is taken.
        let claim = claim::data(self.place, mac).map_err(|refused| Error::of_data(mac, refused))?;
        let (path, device) = free_device()?;
        let fail =
            |what: &str, error: io::Error| Error::Io(io::Error::new(error.kind(), format!("{path}: {what}: {error}")));
        let FebConfig { ring_packets, window, first_packet, word_order, .. } = config;
        let (protocol, firmware) = (abi::protocol(config.protocol()), abi::firmware(config.firmware));
        let words = abi::words(word_order);
        let settings = &mut abi::Config { ring_packets, window, first_packet, protocol, firmware, words, reserved: 0 };
        call_with(&device, abi::SETCONFIG, settings)
            .map_err(|error| fail(&format!("ring of {ring_packets} packets"), error))?;
        let bytes = call(&device, abi::GETBUFLEN, 0).map_err(|error| fail("GETBUFLEN", error))?;
        assert_eq!(bytes, ring_packets * PACKET_BYTES as u64);
        // The driver has it twice in a row.
        let ring = Mapping::shared(device.as_fd(), 0, 2 * bytes as usize, false)
            .map_err(|error| fail("mapping the ring", error))?
            .copied_in_children();
        call_with(&device, abi::GETMAC, &mut slave_id(&self.interface, mac)).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => Error::AlreadyOpen(mac, Holder::Unknown),
            _ => Error::Failed(of_interface(&self.interface, &error)),
        })?;
        let commands = self.commands(mac);
        let armed = Mutex::default();
        let ring = Arc::new(KernelRing { ring: Arc::new(ring), device, armed, claim });
        Ok(Box::new(KernelFebSource { commands, ring, word_order, told_downs: AtomicU32::new(0) }))
    }

    fn open_for_commands(&self, mac: MacAddr) -> Result<Commander, Error> {
        Ok(Commander(self.commands(mac)))
    }
}

struct KernelCommands {
    mac: MacAddr,
    interface: Arc<Interface>,
    place: Segment,
    control: Arc<Kept<File>>,
    /// The driver counts by itself; programs that receive by themselves go on from here.
    numbers: Mutex<Numbers>,
    process: Process,
}

impl Drop for KernelCommands {
    fn drop(&mut self) {
        if !self.process.is_this() {
            return;
        }
        claim::forget_commands(self.place, self.mac);
    }
}

impl KernelCommands {
    /// Programs that receive by themselves may not come between the driver's question and its command.
    fn claim(&self) -> Result<CommandClaim, Error> {
        claim::commands(self.place, self.mac).map_err(|refused| Error::of_commands(self.mac, refused))
    }

    fn error(&self, error: io::Error, code: u16, attempts: u32) -> Error {
        let failed = |error| Error::Command { feb: self.mac, error };
        match error.raw_os_error() {
            Some(libc::ETIMEDOUT) => failed(CommandError::Timeout { code, attempts }),
            Some(libc::EINVAL) => failed(CommandError::BadCode(code)),
            Some(libc::EBUSY) => failed(CommandError::Busy(Holder::Unknown)),
            Some(libc::EOPNOTSUPP) => failed(CommandError::NoCommands(code)),
            _ => Error::Failed(of_interface(&self.interface, &error)),
        }
    }
}

impl Command for KernelCommands {
    fn mac(&self) -> MacAddr {
        self.mac
    }

    fn command(&self, code: u16, argument: u32, timeout: Duration, retries: u32) -> Result<u64, Error> {
        let _claim = self.claim()?;
        let command = abi::UserCommand {
            command: code,
            retries: retries.min(MAX_RETRIES) as u16,
            argument,
            timeout: timeout.as_millis().clamp(1, MAX_TIMEOUT_MS) as u32,
            response: [0; 12],
        };
        let mut request = abi::FebCommand { feb: slave_id(&self.interface, self.mac), command };
        call_with(&self.control, abi::FEBCMD, &mut request).map_err(|error| self.error(error, code, retries + 1))?;
        let [_, _, s0, s1, value @ ..] = request.command.response;
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).saw(u16::from_be_bytes([s0, s1]));
        Ok(u64::from_be_bytes(value))
    }
}

/// The driver's ring. Fields are dropped in order: the device is closed, by RESET if need be, before the claim goes.
struct KernelRing {
    ring: Arc<Mapping>,
    device: Kept<File>,
    armed: Mutex<Armed>,
    #[allow(dead_code)]
    claim: Claim,
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        // Memory that somebody still shows would keep the device open.
        self.ring.leave_device();
    }
}

/// What the driver was told last to wake the reader for.
#[derive(Default)]
struct Armed {
    /// Bytes of the ring.
    wakeup: u64,
    /// Those of them that are not given back, but nothing new.
    lent: u64,
}

impl Armed {
    fn set(&mut self, device: &File, wakeup: u64) {
        if self.wakeup != wakeup {
            self.wakeup = wakeup;
            // The threshold lies within the ring: it cannot fail.
            let _ = call(device, abi::SETTHRESHOLD, wakeup);
        }
    }
}

impl KernelRing {
    fn pointers(&self) -> abi::Pointers {
        let mut pointers = abi::Pointers::default();
        // It fails for a bad pointer alone.
        let _ = call_with(&self.device, abi::READPTRS64, &mut pointers);
        pointers
    }

    fn armed(&self) -> MutexGuard<'_, Armed> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadSide for KernelRing {
    fn file(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn bytes(&self) -> u64 {
        self.ring.bytes() as u64 / 2
    }

    fn memory(&self) -> &Arc<Mapping> {
        &self.ring
    }

    fn begin(&self) -> u64 {
        let pointers = self.pointers();
        (pointers.origin + pointers.tail) % self.bytes()
    }

    fn give_back(&self, bytes: u64) {
        let result = call(&self.device, abi::WRITEPTRS, bytes);
        assert!(result.is_ok(), "released more than was available");
        // The driver counts from what is given back.
        let mut armed = self.armed();
        let less = bytes.min(armed.lent);
        if less > 0 {
            armed.lent -= less;
            let wakeup = armed.wakeup - less;
            armed.set(&self.device, wakeup.max(1));
        }
    }
}

struct KernelFebSource {
    commands: Arc<KernelCommands>,
    ring: Arc<KernelRing>,
    word_order: Option<WordOrder>,
    /// Of the times that the interface went down: how many were told.
    told_downs: AtomicU32,
}

impl KernelFebSource {
    /// Tells each time that the interface goes down; the FEB keeps what is not confirmed until it is up.
    fn tell_downs(&self) {
        let mut link = abi::LinkState::default();
        // A driver without this call ends the transmission.
        let _ = call_with(&self.ring.device, abi::GETINTERFACE, &mut link);
        if self.told_downs.swap(link.downs, Ordering::Relaxed) < link.downs {
            let name = current_name(&self.commands.interface);
            let now = link.obstacle(&name).unwrap_or_else(|| "it is up again".into());
            tracing::warn!(
                "{}: interface {name} went down (times: {}); the board sends again what is not confirmed; now: {now}",
                self.commands.mac,
                link.downs
            );
        }
    }
}

impl FebSource for KernelFebSource {
    fn commander(&self) -> Commander {
        Commander(self.commands.clone())
    }

    fn start(&mut self) -> Result<(), Error> {
        let _claim = self.commands.claim()?;
        call(&self.ring.device, abi::STARTMAC, 0).map(drop).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => Error::Command { feb: self.commands.mac, error: CommandError::StillRunning(2) },
            _ => self.commands.error(error, fadelink_wire::fade10g::CMD_START, DEFAULT_RETRIES + 1),
        })
    }

    fn reset(&self) -> Result<(), Error> {
        let _no_command = claim::before_reset(self.commands.place, self.commands.mac);
        call(&self.ring.device, abi::RESETMAC, 0)
            .map(drop)
            .map_err(|error| Error::Failed(of_interface(&self.commands.interface, &error)))
    }

    fn ring(&self) -> Arc<dyn ReadSide> {
        self.ring.clone()
    }

    fn arm(&self, lent: u64, threshold: u64) {
        let mut armed = self.ring.armed();
        armed.lent = lent;
        armed.set(&self.ring.device, (lent + threshold).min(self.ring.bytes()));
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.ring.device.as_fd()
    }

    fn state(&self) -> (Phase, u64) {
        let pointers = self.ring.pointers();
        let phase = match pointers.state {
            _ if pointers.error != 0 && pointers.state != 2 => Phase::Aborted,
            0 => Phase::Idle,
            1 => Phase::Running,
            2 => Phase::Complete,
            _ => Phase::Aborted,
        };
        (phase, pointers.head - pointers.tail)
    }

    fn ending(&self) -> Ending {
        // A driver without this call knows no more than that the board is silent.
        call(&self.ring.device, abi::GETENDING, 0).map_or(Ending::Silence, |number| Ending::of(number as u8))
    }

    fn told(&self) -> (Option<u16>, Option<Resets>) {
        let mut told = abi::Told::default();
        // A driver without this call tells nothing.
        let _ = call_with(&self.ring.device, abi::GETTOLD, &mut told);
        told.read()
    }

    fn kind(&self) -> Option<Kind> {
        let mut kind = abi::FebKind::default();
        // It fails for a bad pointer alone.
        let _ = call_with(&self.ring.device, abi::GETKIND, &mut kind);
        let same = |firmware: &Firmware| abi::firmware(Some(*firmware)) == kind.firmware;
        let firmware = Firmware::ALL.into_iter().find(same);
        let word_order = self.word_order.or(firmware.map(Firmware::word_order));
        let protocol = match kind.protocol {
            1 => Protocol::Fade10g,
            2 => Protocol::Fade1,
            _ => return None,
        };
        Some(Kind { protocol, firmware, word_order })
    }

    fn broken(&self) -> Error {
        match self.ring.pointers().error {
            0 => Error::Aborted(self.commands.mac, self.ending(), self.told().1.and_then(|resets| resets.by)),
            error => Error::Failed(of_interface(&self.commands.interface, &io::Error::from_raw_os_error(error as i32))),
        }
    }

    fn counters(&self) -> FebCounts {
        let mut now = abi::Statistics::default();
        // It fails for a bad pointer alone.
        let _ = call_with(&self.ring.device, abi::GETSTATS, &mut now);
        self.tell_downs();
        now.into()
    }
}
