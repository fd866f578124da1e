//! The driver's rules (`driver/fade_rules.h`) as Rust sees them, for the tests that hold them against
//! the engine's.

/// `enum fade_kind`
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Data,
    Response,
    Truncated,
    EtherType,
    Version,
    Type,
    Length,
    ValidWords,
}

/// `enum fade_verdict`
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verdict {
    Store,
    ConfirmAgain,
    NoSpace,
    ProtocolError,
}

/// `struct fade_response`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Response {
    pub code: u16,
    pub csn: u16,
    pub value: u64,
}

/// `struct fade_frame`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Frame {
    pub response: Response,
    pub packet: u32,
    pub delay: u32,
    pub sequence: u16,
    pub last: bool,
    pub last_words: u64,
}

/// `struct fade_window`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Window {
    pub in_order: u64,
    pub ahead: u64,
    pub ring_packets: u64,
    pub last_index: u64,
    pub last_words: u64,
    pub first: u32,
    pub size: u32,
    pub last_seen: bool,
}

#[allow(missing_docs)]
unsafe extern "C" {
    pub fn fade_parse(head: *const u8, len: usize, final_word: *const u8, out: *mut Frame) -> Kind;
    pub fn fade_ack(out: *mut u8, feb: *const u8, local: *const u8, frame: *const Frame);
    pub fn fade_command(out: *mut u8, feb: *const u8, local: *const u8, code: u16, csn: u16, argument: u32);
    pub fn fade_window_init(w: *mut Window, first: u32, size: u32, ring_packets: u64);
    pub fn fade_window_judge(w: *const Window, frame: *const Frame, released: u64, index: *mut u64) -> Verdict;
    pub fn fade_window_stored(w: *mut Window, index: u64, frame: *const Frame);
    pub fn fade_window_slot(w: *const Window, index: u64) -> u64;
    pub fn fade_window_bytes(w: *const Window) -> u64;
    pub fn fade_window_complete(w: *const Window) -> bool;
}
