//! The driver's rules (`driver/fade_rules.h`) as Rust sees them, for tests that compare them with the engine.

use fadelink_receiver::abi::Statistics;

/// `enum fade_kind`
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Data,
    Response,
    Data1,
    State1,
    Truncated,
    EtherType,
    Version,
    Type,
    Length,
    ValidWords,
    Packet1,
}

/// `enum fade_verdict`, and `enum fade1_verdict`
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
    pub retry: u16,
    pub number: u16,
    pub resets_told: bool,
    pub resets: u8,
    pub reset_by: [u8; 6],
    pub permit_told: bool,
    pub permit: u32,
    pub block_acks: bool,
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

/// `struct fade1_sets`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Sets {
    pub ring_packets: u64,
    pub in_order: u64,
    pub ahead: u64,
}

/// `struct fade_confirmation`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Confirmation {
    pub index: u64,
    pub stored: u64,
    pub packet: u32,
    pub delay: u32,
    pub sequence: u16,
    pub block: bool,
    pub fade1: bool,
}

/// `struct fade_start`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Start {
    pub stage: u32,
    pub asked: bool,
    pub heard: bool,
    pub has_reset: bool,
    pub resets_due: bool,
    pub interrupted: bool,
    pub csn: u16,
    pub attempts: u32,
    pub refusals: u32,
    pub has_obeyed: bool,
    pub obeyed: u16,
    pub permit: u32,
    pub begun_again: u32,
    pub rounds: u32,
    pub reset_since: u64,
    pub next: u64,
    pub timeout_ms: u32,
    pub retries: u32,
    pub outcome: u32,
}

/// `struct fade_feb`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct DriverFeb {
    pub owned: bool,
    pub window: Window,
    pub sets: Sets,
    pub protocol: u32,
    pub firmware: u32,
    pub identified: bool,
    pub block_acks: bool,
    pub unconfirmed: bool,
    pub newest: Confirmation,
    pub swap: u32,
    pub started: bool,
    pub start: Start,
    pub first: u32,
    pub first_until: u64,
    pub number: u16,
    pub resets_told: bool,
    pub resets: u8,
    pub reset_by: [u8; 6],
    pub waiting: bool,
    pub permit: u32,
    pub permit_due: bool,
    pub has_shown: bool,
    pub others: u32,
    pub stopping: bool,
    pub stops: u32,
    pub told: u32,
    pub next_request: u64,
    pub stop_sent: bool,
    pub stray: bool,
    pub restarts: u32,
    pub state: u32,
    pub ending: u32,
    pub pending: bool,
    pub pending_code: u16,
    pub pending_csn: u16,
    pub csn: u16,
    pub csn_told: bool,
    pub answer: Response,
    pub last_response: Response,
    pub next_sequence: u16,
    pub sequence_known: bool,
    pub next_reset: u64,
    pub stats: Statistics,
}

/// `struct fade_settings`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct DriverSettings {
    pub ring_packets: u64,
    pub window: u32,
    pub first_packet: u32,
    pub protocol: u32,
    pub firmware: u32,
    pub words: u32,
}

/// `struct fade_actions`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Actions {
    pub store: bool,
    pub confirm: bool,
    pub reset: bool,
    pub begun: bool,
    pub answered: bool,
    pub tick: bool,
    pub slot: u64,
}

/// `struct fade_request`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Request {
    pub fade1: bool,
    pub code: u16,
    pub csn: u16,
    pub argument: u32,
}

/// `struct fade_tick`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Tick {
    pub requests: [Request; 12],
    pub count: u32,
    pub begun: bool,
    pub wake: bool,
    pub next: u64,
    pub again: bool,
}

#[allow(missing_docs)]
unsafe extern "C" {
    pub fn fade_parse(head: *const u8, len: usize, final_word: *const u8, out: *mut Frame) -> Kind;
    pub fn fade_ack(out: *mut u8, feb: *const u8, local: *const u8, what: *const Confirmation);
    pub fn fade_command(out: *mut u8, feb: *const u8, local: *const u8, code: u16, csn: u16, argument: u32);
    pub fn fade_window_init(w: *mut Window, first: u32, size: u32, ring_packets: u64);
    pub fn fade_window_judge(w: *const Window, frame: *const Frame, released: u64, index: *mut u64) -> Verdict;
    pub fn fade_window_stored(w: *mut Window, index: u64, frame: *const Frame) -> bool;
    pub fn fade_window_stored_before(w: *const Window, index: u64) -> u64;
    pub fn fade_window_slot(w: *const Window, index: u64) -> u64;
    pub fn fade_window_bytes(w: *const Window) -> u64;
    pub fn fade_window_complete(w: *const Window) -> bool;
    pub fn fade1_request(out: *mut u8, feb: *const u8, local: *const u8, kind: u16, number: u16, permit: u32);
    pub fn fade1_sets_judge(s: *const Sets, set: u16, packet: u32, released: u64, index: *mut u64) -> Verdict;
    pub fn fade1_sets_stored(s: *mut Sets, index: u64) -> bool;
    pub fn fade1_sets_stored_before(s: *const Sets, index: u64) -> u64;
    pub fn fade_feb_init(feb: *mut DriverFeb, settings: *const DriverSettings, owned: bool, csn: u16);
    pub fn fade_feb_bytes(feb: *const DriverFeb) -> u64;
    pub fn fade_feb_packet_bytes(feb: *const DriverFeb) -> u32;
    pub fn fade_feb_origin(feb: *const DriverFeb) -> u64;
    pub fn fade_feb_start(feb: *mut DriverFeb, timeout_ms: u32, retries: u32, now_ms: u64);
    pub fn fade1_feb_stop(feb: *mut DriverFeb, now_ms: u64) -> bool;
    pub fn fade_feb_break_off(feb: *mut DriverFeb);
    pub fn fade_feb_tick(feb: *mut DriverFeb, settings: *const DriverSettings, now_ms: u64, out: *mut Tick);
    pub fn fade_csn_after(a: u16, b: u16) -> bool;
    pub fn fade_shows_csn(response: *const Response, csn: *mut u16) -> bool;
    pub fn fade_feb_asks(feb: *const DriverFeb, code: u16) -> bool;
    pub fn fade_feb_command(feb: *mut DriverFeb, code: u16) -> u16;
    pub fn fade_feb_take(
        feb: *mut DriverFeb,
        settings: *const DriverSettings,
        kind: Kind,
        frame: *const Frame,
        given_back: u64,
        now_ms: u64,
        out: *mut Actions,
    );
    pub fn fade_feb_confirm(feb: *mut DriverFeb, out: *mut Confirmation) -> bool;
}
