//! The functions of `include/fadelink.h`, which documents them.
//!
//! # Safety
//! All pointers must be as the header says: live, made by these functions, or NUL-terminated text. NULL where a
//! value is needed gives an error.
#![allow(missing_docs, clippy::missing_safety_doc)]

use std::cell::RefCell;
use std::ffi::{c_char, c_int, CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use fadelink_receiver::backend::packet::Packet;
#[cfg(feature = "xdp")]
use fadelink_receiver::backend::xdp::Xdp;
use fadelink_receiver::fork::Process;
use fadelink_receiver::{CommandError, Commander, Error, FebConfig, FebHandle, Inquiry, Receiver};
use fadelink_wire::fade10g::CMD_STOP;
use fadelink_wire::{Firmware, Protocol, WordOrder};

const ERROR: c_int = -1;
const END: i64 = -2;
const TIMEOUT: c_int = -3;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

fn note(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST.with(|last| *last.borrow_mut() = text);
}

/// Notes an error; `None` instead of it.
fn noted<T, E: ToString>(result: Result<T, E>) -> Option<T> {
    result.map_err(|error| note(&error.to_string())).ok()
}

/// A pointer that is not NULL, or an error.
fn live<T>(pointer: *const T, name: &str) -> Option<*mut T> {
    if pointer.is_null() {
        note(&format!("{name}: expected no NULL"));
        return None;
    }
    Some(pointer.cast_mut())
}

/// The value of a pointer, or an error.
unsafe fn non_null<'a, T>(pointer: *mut T, name: &str) -> Option<&'a mut T> {
    // SAFETY: live, as the header says.
    live(pointer, name).map(|pointer| unsafe { &mut *pointer })
}

unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Option<&'a str> {
    if pointer.is_null() {
        note(&format!("{name}: expected text, not NULL"));
        return None;
    }
    // SAFETY: NUL-terminated, as the header says.
    noted(unsafe { CStr::from_ptr(pointer) }.to_str().map_err(|_| format!("{name}: expected UTF-8")))
}

fn status(result: Result<(), Error>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            note(&error.to_string());
            match error {
                Error::Command { error: CommandError::Timeout { .. } | CommandError::NotSent { .. }, .. } => TIMEOUT,
                _ => ERROR,
            }
        }
    }
}

/// `struct fadelink_config`
#[repr(C)]
pub struct Config {
    ring_packets: u64,
    window: u32,
    first_packet: u32,
    protocol: u32,
    firmware: u32,
    word_order: u32,
}

/// `struct fadelink_kind`
#[repr(C)]
pub struct FebKind {
    protocol: u32,
    firmware: u32,
    word_order: u32,
}

/// `struct fadelink_inquiry`
#[repr(C)]
pub struct FebInquiry {
    ending: i32,
    resets: i32,
    reset_by: [u8; 6],
}

impl Config {
    fn read(&self) -> Result<FebConfig, String> {
        let protocol = match self.protocol {
            0 => None,
            1 => Some(Protocol::Fade10g),
            2 => Some(Protocol::Fade1),
            other => return Err(format!("protocol {other}: expected FADELINK_ANY, _FADE10G or _FADE1 (0 to 2)")),
        };
        let firmware = match self.firmware {
            0 => None,
            n @ 1..=3 => Some(Firmware::ALL[n as usize - 1]),
            other => return Err(format!("firmware {other}: expected FADELINK_ANY or FADELINK_FIRMWARE_* (0 to 3)")),
        };
        let word_order = match self.word_order {
            0 => None,
            1 => Some(WordOrder::Little),
            2 => Some(WordOrder::Big),
            other => {
                return Err(format!(
                    "word_order {other}: expected FADELINK_ANY, FADELINK_WORDS_LITTLE or _BIG (0 to 2)"
                ))
            }
        };
        let Config { ring_packets, window, first_packet, .. } = *self;
        Ok(FebConfig { ring_packets, window, first_packet, protocol, firmware, word_order, ..FebConfig::default() })
    }
}

pub struct OpenReceiver {
    receiver: Arc<Receiver>,
    process: Process,
}

pub struct Feb {
    handle: FebHandle,
    commander: Commander,
    process: Process,
    /// It ends with the last of its FEBs.
    #[allow(dead_code)]
    receiver: Arc<Receiver>,
}

/// An error in a process that was forked from the one that has opened it. There nothing else of it is looked at.
fn is_here(process: Process, name: &str) -> Option<()> {
    if !process.is_this() {
        note(&format!("{name}: it is one of the process that this one was forked from; open your own here"));
        return None;
    }
    Some(())
}

unsafe fn opened<'a>(receiver: *const OpenReceiver) -> Option<&'a Arc<Receiver>> {
    // SAFETY: live, as the header says, and nothing changes it.
    let OpenReceiver { receiver, process } = live(receiver, "receiver").map(|receiver| unsafe { &*receiver })?;
    is_here(*process, "receiver").map(|()| receiver)
}

/// A FEB that is one of this process.
unsafe fn open_feb(feb: *const Feb) -> Option<*mut Feb> {
    let feb = live(feb, "feb")?;
    // SAFETY: live; only this field is looked at, which never changes.
    is_here(unsafe { (*feb).process }, "feb").map(|()| feb)
}

#[unsafe(no_mangle)]
pub extern "C" fn fadelink_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

#[cfg(feature = "xdp")]
fn xdp(interface: &str, busy_poll: bool) -> io::Result<Receiver> {
    Xdp::open(interface, busy_poll).and_then(Receiver::spawn)
}

#[cfg(not(feature = "xdp"))]
fn xdp(_interface: &str, _busy_poll: bool) -> io::Result<Receiver> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "backend xdp: this library was built without it (cargo feature xdp)",
    ))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_open(interface: *const c_char, backend: *const c_char) -> *mut OpenReceiver {
    // SAFETY: see the header.
    let (interface, backend) = unsafe { (text(interface, "interface"), text(backend, "backend")) };
    let (Some(interface), Some(backend)) = (interface, backend) else { return std::ptr::null_mut() };
    let receiver = match backend {
        "packet" => Packet::open(interface).and_then(Receiver::spawn),
        "xdp" => xdp(interface, false),
        "xdp-busy-poll" => xdp(interface, true),
        "kernel" => Receiver::kernel(interface),
        other => {
            note(&format!("backend `{other}`: expected packet, xdp, xdp-busy-poll or kernel"));
            return std::ptr::null_mut();
        }
    };
    let opened = |receiver| OpenReceiver { receiver: Arc::new(receiver), process: Process::this() };
    noted(receiver).map_or(std::ptr::null_mut(), |receiver| Box::into_raw(Box::new(opened(receiver))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_close(receiver: *mut OpenReceiver) {
    if !receiver.is_null() {
        // SAFETY: made by fadelink_open.
        drop(unsafe { Box::from_raw(receiver) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_feb_open(
    receiver: *mut OpenReceiver,
    mac: *const c_char,
    config: *const Config,
) -> *mut Feb {
    // SAFETY: see the header.
    let (receiver, mac, config) = unsafe { (opened(receiver), text(mac, "mac"), config.as_ref()) };
    let (Some(receiver), Some(mac)) = (receiver, mac) else { return std::ptr::null_mut() };
    let wrong = |_| format!("mac `{mac}`: expected an address like 02:fa:de:00:00:01");
    let Some(mac) = noted(mac.parse().map_err(wrong)) else { return std::ptr::null_mut() };
    let config = config.map_or(Ok(FebConfig::default()), Config::read);
    let Some(config) = noted(config) else { return std::ptr::null_mut() };
    noted(receiver.open(mac, config)).map_or(std::ptr::null_mut(), |handle| {
        let commander = handle.commander();
        let (process, receiver) = (Process::this(), receiver.clone());
        Box::into_raw(Box::new(Feb { handle, commander, process, receiver }))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_feb_close(feb: *mut Feb) {
    if !feb.is_null() {
        // SAFETY: made by fadelink_feb_open.
        drop(unsafe { Box::from_raw(feb) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_start(feb: *mut Feb) -> c_int {
    // SAFETY: see the header.
    unsafe { reader(feb) }.map_or(ERROR, |handle| status(handle.start()))
}

/// What the reader of a FEB uses, without touching what other threads may.
unsafe fn reader<'a>(feb: *const Feb) -> Option<&'a mut FebHandle> {
    // SAFETY: live; one thread at a time reads, and nothing else refers to this field.
    unsafe { open_feb(feb).map(|feb| &mut (*feb).handle) }
}

/// The commands of a FEB, without touching what its reader uses.
unsafe fn commander<'a>(feb: *const Feb) -> Option<&'a Commander> {
    // SAFETY: live; only this field is looked at, which never changes.
    unsafe { open_feb(feb).map(|feb| &(*feb).commander) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_stop(feb: *mut Feb) -> c_int {
    // SAFETY: see the header.
    unsafe { commander(feb) }.map_or(ERROR, |commander| status(commander.command(CMD_STOP, 0).map(drop)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_reset(feb: *mut Feb) -> c_int {
    // SAFETY: see the header.
    unsafe { reader(feb) }.map_or(ERROR, |handle| status(handle.reset()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_feb_ending(feb: *const Feb) -> c_int {
    // SAFETY: see the header.
    unsafe { reader(feb) }.map_or(ERROR, |handle| handle.ending() as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_inquire(feb: *mut Feb, inquiry: *mut FebInquiry) -> c_int {
    // SAFETY: see the header.
    let (Some(handle), Some(out)) = (unsafe { (reader(feb), non_null(inquiry, "inquiry")) }) else { return ERROR };
    status(handle.inquire().map(|Inquiry { ending, resets, .. }| {
        let by = resets.and_then(|resets| resets.by);
        *out = FebInquiry {
            ending: ending as i32,
            resets: resets.map_or(-1, |resets| resets.count.into()),
            reset_by: by.map_or([0; 6], |by| by.0),
        };
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_against(feb: *mut Feb, text: *mut c_char, size: usize) -> i64 {
    // SAFETY: see the header.
    let Some(handle) = (unsafe { reader(feb) }) else { return ERROR.into() };
    let against = match handle.against() {
        Ok(against) => against,
        Err(error) => return status(Err(error)).into(),
    };
    if !text.is_null() && size > 0 {
        let words = against.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let length = words.len().min(size - 1);
        // SAFETY: there are `size` bytes at `text`; see the header.
        let out = unsafe { std::slice::from_raw_parts_mut(text.cast::<u8>(), length + 1) };
        out[..length].copy_from_slice(&words.as_bytes()[..length]);
        out[length] = 0;
    }
    against.len() as i64
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_feb_kind(feb: *const Feb, kind: *mut FebKind) -> c_int {
    // SAFETY: see the header.
    let (Some(handle), Some(out)) = (unsafe { (reader(feb), non_null(kind, "kind")) }) else { return ERROR };
    let kind = handle.kind();
    let firmware = kind.and_then(|kind| kind.firmware);
    *out = FebKind {
        protocol: kind.map_or(0, |kind| if kind.protocol == Protocol::Fade10g { 1 } else { 2 }),
        firmware: firmware.and_then(|f| Firmware::ALL.iter().position(|all| *all == f)).map_or(0, |at| at as u32 + 1),
        word_order: match kind.and_then(|kind| kind.word_order) {
            None => 0,
            Some(WordOrder::Little) => 1,
            Some(WordOrder::Big) => 2,
        },
    };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_command(
    feb: *mut Feb,
    code: u16,
    argument: u32,
    timeout_ms: u32,
    retries: u32,
    value: *mut u64,
) -> c_int {
    // SAFETY: see the header.
    let (Some(commander), Some(value)) = (unsafe { (commander(feb), non_null(value, "value")) }) else {
        return ERROR;
    };
    let timeout = Duration::from_millis(timeout_ms.max(1).into());
    status(commander.command_with(code, argument, timeout, retries).map(|answer| *value = answer))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_read(
    feb: *mut Feb,
    threshold: usize,
    timeout_ms: c_int,
    words: *mut *const u64,
) -> i64 {
    // SAFETY: see the header.
    let (Some(handle), Some(words)) = (unsafe { (reader(feb), non_null(words, "words")) }) else {
        return ERROR.into();
    };
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    match noted(handle.wait(threshold, timeout)) {
        None => ERROR.into(),
        Some(false) => END,
        Some(true) => {
            let data = handle.data();
            *words = data.as_ptr().cast();
            data.len() as i64 / 8
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_release(feb: *mut Feb, words: u64) -> c_int {
    // SAFETY: see the header.
    let Some(handle) = (unsafe { reader(feb) }) else { return ERROR };
    let there = handle.data().len() as u64 / 8;
    if words > there {
        note(&format!("release of {words} words: {there} are there"));
        return ERROR;
    }
    handle.release(words as usize * 8);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_arm(feb: *mut Feb, threshold: usize) -> c_int {
    // SAFETY: see the header.
    unsafe { reader(feb) }.map_or(ERROR, |handle| handle.arm(threshold).into())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_fd(feb: *const Feb) -> c_int {
    // SAFETY: see the header.
    unsafe { reader(feb) }.map_or(ERROR, |handle| handle.as_fd().as_raw_fd())
}

unsafe fn counter(entries: Vec<(&'static str, u64)>, name: *const c_char, value: *mut u64) -> c_int {
    // SAFETY: see the header.
    let (Some(name), Some(value)) = (unsafe { (text(name, "name"), non_null(value, "value")) }) else {
        return ERROR;
    };
    match entries.iter().find(|(known, _)| *known == name) {
        Some((_, count)) => {
            *value = *count;
            0
        }
        None => {
            let known: Vec<_> = entries.iter().map(|(known, _)| *known).collect();
            note(&format!("counter `{name}`: expected one of {}", known.join(", ")));
            ERROR
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_counter(feb: *const Feb, name: *const c_char, value: *mut u64) -> c_int {
    // SAFETY: see the header.
    unsafe { reader(feb).map_or(ERROR, |handle| counter(handle.counters().entries(), name, value)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fadelink_link_counter(
    receiver: *const OpenReceiver,
    name: *const c_char,
    value: *mut u64,
) -> c_int {
    // SAFETY: see the header.
    unsafe { opened(receiver).map_or(ERROR, |receiver| counter(receiver.counters().entries(), name, value)) }
}
