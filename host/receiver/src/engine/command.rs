//! Inputs and outputs of the engine: requests of its user, and frames to send.

use std::fmt::Display;
use std::time::Duration;

use fadelink_wire::fade10g::{self, Request};
use fadelink_wire::{fade1, Firmware, MacAddr, Protocol, WordOrder};

use crate::holder::Holder;
use crate::shared::Ending;
use crate::window::MAX_WINDOW;

/// Shortest time between two RESETs to a FEB that sends what nobody asked for.
pub(super) const RESET_INTERVAL: Duration = Duration::from_millis(50);
/// RESETs in a row, where one that is lost would do harm.
pub(super) const RESETS: u32 = 3;
/// How often that is done, with silence after each, where nothing else proves that RESET was obeyed: on a link that loses
/// a fifth of its frames all are lost once in two million times.
pub(super) const RESET_ROUNDS: u32 = 3;
/// Time after a RESET in which frames under way arrive and are discarded.
pub(super) const SETTLE: Duration = Duration::from_millis(20);
/// Time from one START of FADE v1 to the next, while no data comes.
pub(super) const START_INTERVAL: Duration = Duration::from_millis(100);
/// How often a START that meets a running transmission is preceded by RESET.
pub(super) const START_ATTEMPTS: u32 = 10;
/// How often a FEB is asked what it is, before it counts as one that does not answer. That all answers are lost on
/// a link that loses a fifth of its frames happens once in 200,000 times.
pub(super) const IDENTIFY_ATTEMPTS: u32 = 12;
/// The part of a command's time-out after which IDENTIFY is repeated.
pub(super) const IDENTIFY_SHARE: u32 = 4;
/// How long RESET is repeated to a FEB that sends on.
pub(super) const RESET_PATIENCE: Duration = Duration::from_secs(2);
/// How long the data of a transmission that is to go on is waited for, where the FEB does not tell that it runs.
pub(super) const RESUME_PATIENCE: Duration = Duration::from_secs(1);
/// How long others may come before the first packet of a transmission, where START proves nothing.
pub(super) const FIRST_PATIENCE: Duration = Duration::from_millis(100);
/// The same of a FEB that answers START, which is repeated meanwhile.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// RESET of FADE-10G.
pub(super) const RESET: Request = Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };

/// Packets of 8192 bytes that hold two sets of FADE v1.
const LEAST_RING_FADE1: u64 = 2 * (fade1::SET_PACKETS as usize * fade1::PACKET_BYTES / fade10g::PACKET_BYTES) as u64;

/// Settings of one FEB.
#[derive(Debug, Clone, Copy)]
pub struct FebConfig {
    /// Packets of the ring, a power of two, at least the window.
    pub ring_packets: u64,
    /// Packets of the FEB's window, 1 to 64; a larger value than the FEB's own is safe.
    pub window: u32,
    /// Number of the first packet of a transmission: 0 but in tests of the wrap.
    pub first_packet: u32,
    /// What the FEB speaks; `None`: START finds out.
    pub protocol: Option<Protocol>,
    /// Whose core the FEB runs; `None`: START finds out.
    pub firmware: Option<Firmware>,
    /// Byte order of its data words on the wire; `None`: as its firmware has it.
    pub word_order: Option<WordOrder>,
    /// When packets are confirmed. The kernel driver confirms them when they are received.
    pub confirm: Confirm,
    /// The CRC of all words is asked for, if the FEB has it: for who compares it. Not with the kernel driver.
    pub checksum: bool,
}

/// When a packet is confirmed to the FEB, which forgets it then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confirm {
    /// It is in the ring.
    #[default]
    Received,
    /// It has left the ring: who reads the data is done with it, and with all before it.
    Released,
}

/// A transmission that is to go on with another receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Bytes of it that are confirmed.
    pub bytes: u64,
    /// Its end was asked for.
    pub stopped: bool,
    /// Its number ([`crate::FebHandle::transmission`]); `None`: it is not known, and the one that runs is accepted.
    pub number: Option<u16>,
    /// What its data came by; `None`: it is not known, and what comes is accepted.
    pub protocol: Option<Protocol>,
}

impl Resumed {
    /// It may be one of this protocol.
    pub(super) fn may_be(&self, protocol: Protocol) -> bool {
        self.protocol.is_none_or(|its| its == protocol)
    }

    /// Its last packet is among the bytes that are confirmed: only that one of FADE-10G is not full.
    pub(super) fn has_last(&self) -> bool {
        self.protocol == Some(Protocol::Fade10g) && !self.bytes.is_multiple_of(fade10g::PACKET_BYTES as u64)
    }
}

impl Default for FebConfig {
    fn default() -> Self {
        FebConfig {
            ring_packets: 2048,
            window: MAX_WINDOW,
            first_packet: 0,
            protocol: None,
            firmware: None,
            word_order: None,
            confirm: Confirm::default(),
            checksum: false,
        }
    }
}

impl FebConfig {
    /// What the FEB speaks, as given or as its firmware does.
    pub fn protocol(&self) -> Option<Protocol> {
        self.firmware.and_then(Firmware::protocol).or(self.protocol)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first that does not fit.
    pub fn check(&self) -> Result<(), WrongField> {
        let wrong = |field, value: &dyn Display, expected: String| Err(WrongField::new(field, value, expected));
        if !(1..=MAX_WINDOW).contains(&self.window) {
            return wrong("window", &self.window, format!("expected 1 to {MAX_WINDOW} packets"));
        }
        if let (Some(firmware), Some(given), Some(spoken)) = (self.firmware, self.protocol, self.protocol()) {
            if given != spoken {
                return wrong("protocol", &given, format!("expected {spoken}, which firmware {firmware} speaks"));
            }
        }
        let ring = self.ring_packets;
        if self.protocol() != Some(Protocol::Fade10g) && ring < LEAST_RING_FADE1 {
            let expected = format!(
                "expected at least {LEAST_RING_FADE1} packets, two sets of FADE v1; for FADE-10G alone, say so by its protocol"
            );
            return wrong("ring_packets", &ring, expected);
        }
        if !ring.is_power_of_two() || ring < u64::from(self.window) || ring > 1 << 24 {
            let expected = format!("expected a power of two from the window ({}) to {}", self.window, 1 << 24);
            return wrong("ring_packets", &ring, expected);
        }
        Ok(())
    }
}

/// A field whose value does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value}: {expected}")]
pub struct WrongField {
    /// Its name.
    pub field: &'static str,
    /// What was given.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

impl WrongField {
    /// A field with this value.
    pub fn new(field: &'static str, value: impl Display, expected: impl Into<String>) -> WrongField {
        WrongField { field, value: value.to_string(), expected: expected.into() }
    }
}

/// Why a command has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No response in time.
    #[error("no response to command {code:#06x} after {attempts} attempts")]
    Timeout {
        /// Code of the command.
        code: u16,
        /// Frames sent.
        attempts: u32,
    },
    /// The FEB did not tell which number it executed last, so that the command could not be told from a repetition.
    #[error("no answer to IDENTIFY after {attempts} attempts; command {code:#06x} was not sent")]
    NotSent {
        /// Code of the command.
        code: u16,
        /// IDENTIFYs sent.
        attempts: u32,
    },
    /// START found a transmission that RESET did not end.
    #[error("the FEB still runs an earlier transmission after {START_ATTEMPTS} RESETs (status {0})")]
    StillRunning(u64),
    /// The transmission that was to go on has ended, or another one runs; how that is known.
    #[error("the FEB does not run the transmission that was to go on{why}", why = .0.why(None))]
    NotRunning(Ending),
    /// The last packet of the transmission that was to go on is confirmed.
    #[error("the transmission that was to go on is at its end")]
    AtItsEnd,
    /// RESET does not silence the FEB.
    #[error("the FEB sends data of an earlier transmission in spite of RESET")]
    SendsOn,
    /// The FEB was closed, or the receiver ended, meanwhile.
    #[error("the FEB was closed before it responded")]
    Closed,
    /// START was not answered when its user did not want it any more. The FEB may obey it later.
    #[error("it was given up before the FEB responded")]
    GivenUp,
    /// Another program on this computer sends commands to the FEB.
    #[error("{0} keeps sending commands to the FEB")]
    Busy(Holder),
    /// A command to a FEB of FADE v1, which has START, STOP and RESET alone.
    #[error("command {0:#06x}: the board speaks FADE v1, which has no user commands")]
    NoCommands(u16),
    /// Codes that are not commands.
    #[error("command code {0:#06x}: expected STOP, IDENTIFY, RESET BY or 0x0100 to 0xffff")]
    BadCode(u16),
}

/// Is given the value of a command's response.
pub type Reply = Box<dyn FnOnce(Result<u64, CommandError>) + Send>;

/// A command to send.
pub struct Command {
    /// Code.
    pub code: u16,
    /// Argument.
    pub argument: u32,
    /// Time from each attempt to the next.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Is told the outcome, once.
    pub reply: Reply,
}

/// What the engine does to the world.
pub trait Actions {
    /// Sends a frame.
    fn send(&mut self, frame: &[u8]);
    /// False if nothing that is sent now can be answered: the interface is down, or cannot receive for another reason.
    fn is_connected(&mut self) -> bool {
        true
    }
    /// True if another program on this computer has opened `feb`.
    fn opened_elsewhere(&mut self, feb: MacAddr) -> bool {
        let _ = feb;
        false
    }
    /// Sends a RESET for data that nobody wants, or not: a command to `feb` is under way, and its repetition would be executed again.
    fn refuse(&mut self, feb: MacAddr, reset: &[u8]) -> bool {
        let _ = feb;
        self.send(reset);
        true
    }
}

impl<F: FnMut(&[u8])> Actions for F {
    fn send(&mut self, frame: &[u8]) {
        self(frame);
    }
}
