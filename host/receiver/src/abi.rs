//! Calls and structures of the kernel driver, as in driver/fadelink_uapi.h.
#![allow(missing_docs)] // the header documents them

use std::mem::size_of;

use fadelink_wire::{Firmware, MacAddr, Protocol, Resets, WordOrder};

use crate::counters::FebCounts;

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct SlaveId {
    pub mac: [u8; 6],
    pub name: [u8; 16],
}

#[repr(C, packed)]
#[derive(Clone, Copy)]
pub struct UserCommand {
    pub command: u16,
    pub retries: u16,
    pub argument: u32,
    pub timeout: u32,
    pub response: [u8; 12],
}

#[repr(C)]
#[derive(Default)]
pub struct Pointers {
    pub head: u64,
    pub tail: u64,
    pub origin: u64,
    pub state: u32,
    pub error: u32,
}

#[repr(C)]
pub struct Config {
    pub ring_packets: u64,
    pub window: u32,
    pub first_packet: u32,
    pub protocol: u32,
    pub firmware: u32,
    pub words: u32,
    pub reserved: u32,
}

/// `struct fade_feb_kind`
#[repr(C)]
#[derive(Default)]
pub struct FebKind {
    pub protocol: u32,
    pub firmware: u32,
}

/// `struct fade_interface`
#[repr(C)]
#[derive(Default)]
pub struct LinkState {
    pub state: u32,
    pub downs: u32,
}

impl LinkState {
    /// Why nothing can come from the FEB at this moment, and what to do, where that is known.
    pub fn obstacle(&self, name: &str) -> Option<String> {
        Some(match self.state {
            state if state & 1 != 0 => format!("interface {name} was removed"),
            state if state & 2 != 0 => format!("interface {name} is down; set it up: ip link set {name} up"),
            state if state & 16 != 0 => {
                format!("interface {name} has another address than at START, and the board sends to that one: set it back, or start again")
            }
            state if state & 8 != 0 => {
                format!("interface {name} has an MTU that is too small for data frames: ip link set {name} mtu 9000")
            }
            state if state & 4 != 0 => {
                format!("interface {name} has no carrier: check the cable and the power of the board")
            }
            _ => return None,
        })
    }
}

/// `FADE_PROTOCOL_*` of what a FEB speaks; `None`: START finds out.
pub fn protocol(protocol: Option<Protocol>) -> u32 {
    match protocol {
        None => 0,
        Some(Protocol::Fade10g) => 1,
        Some(Protocol::Fade1) => 2,
    }
}

/// `FADE_FIRMWARE_*`; `None`: START finds out.
pub fn firmware(firmware: Option<Firmware>) -> u32 {
    match firmware {
        None => 0,
        Some(Firmware::Fadelink) => 1,
        Some(Firmware::Published10g) => 2,
        Some(Firmware::PublishedV1) => 3,
    }
}

/// `FADE_WORDS_*` that makes the words native; `None`: they come as the firmware has them.
pub fn words(order: Option<WordOrder>) -> u32 {
    match order {
        None => 1,
        Some(WordOrder::Little) => 2,
        Some(WordOrder::Big) => 3,
    }
}

#[repr(C, packed)]
pub struct FebCommand {
    pub feb: SlaveId,
    pub command: UserCommand,
}

/// `struct fade_statistics`: counters of a FEB, as [`FebCounts`] has them.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct Statistics {
    pub packets: u64,
    pub duplicates: u64,
    pub repaired: u64,
    pub no_space: u64,
    pub not_started: u64,
    pub protocol_errors: u64,
    pub wrong_length: u64,
    pub wrong_valid_words: u64,
    pub missing_frames: u64,
    pub acks: u64,
    pub responses: u64,
    pub unexpected_responses: u64,
    pub commands: u64,
    pub resets: u64,
    pub interrupted: u64,
    pub begun_again: u64,
    pub delay: u64,
}

/// `struct fade_told`
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub struct Told {
    pub transmission: u16,
    pub known: u8,
    pub resets: u8,
    pub reset_by: [u8; 6],
}

impl Told {
    /// The number of the transmission on the FEB, and the RESETs that the FEB has told.
    pub fn read(&self) -> (Option<u16>, Option<Resets>) {
        let by = (self.reset_by != [0; 6]).then_some(MacAddr(self.reset_by));
        let resets = Resets { count: self.resets, by };
        ((self.known & 1 != 0).then_some(self.transmission), (self.known & 2 != 0).then_some(resets))
    }
}

#[repr(C)]
#[derive(Default)]
pub struct LinkStatistics {
    pub frames: u64,
    pub other_destination: u64,
    pub truncated: u64,
    pub wrong_version: u64,
    pub wrong_type: u64,
    pub unknown_feb: u64,
    pub resets: u64,
    pub no_memory: u64,
    pub send_errors: u64,
}

impl From<Statistics> for FebCounts {
    fn from(counts: Statistics) -> FebCounts {
        FebCounts {
            packets: counts.packets,
            duplicates: counts.duplicates,
            // The driver does not look into packets.
            contradictions: 0,
            repaired: counts.repaired,
            no_space: counts.no_space,
            not_started: counts.not_started,
            protocol_errors: counts.protocol_errors,
            wrong_length: counts.wrong_length,
            wrong_valid_words: counts.wrong_valid_words,
            missing_frames: counts.missing_frames,
            acks: counts.acks,
            responses: counts.responses,
            unexpected_responses: counts.unexpected_responses,
            commands: counts.commands,
            resets: counts.resets,
            interrupted: counts.interrupted,
            begun_again: counts.begun_again,
            delay: counts.delay,
        }
    }
}

const READ: u64 = 2;
const WRITE: u64 = 1;

const fn call(direction: u64, number: u64, size: usize) -> u64 {
    direction << 30 | (size as u64) << 16 | 0xA5 << 8 | number
}

pub const SETTHRESHOLD: u64 = call(0, 0x47, 0);
pub const GETBUFLEN: u64 = call(0, 0x31, 0);
pub const WRITEPTRS: u64 = call(0, 0x33, 0);
pub const GETMAC: u64 = call(WRITE, 0x34, size_of::<SlaveId>());
pub const STARTMAC: u64 = call(0, 0x35, 0);
pub const RESETMAC: u64 = call(0, 0x39, 0);
pub const READPTRS64: u64 = call(READ, 0x41, size_of::<Pointers>());
pub const GETSTATS: u64 = call(READ, 0x42, size_of::<Statistics>());
pub const SETCONFIG: u64 = call(WRITE, 0x43, size_of::<Config>());
pub const FEBCMD: u64 = call(READ | WRITE, 0x44, size_of::<FebCommand>());
pub const GETKIND: u64 = call(READ, 0x46, size_of::<FebKind>());
pub const GETENDING: u64 = call(0, 0x48, 0);
pub const GETTOLD: u64 = call(READ, 0x49, size_of::<Told>());
pub const GETINTERFACE: u64 = call(READ, 0x4A, size_of::<LinkState>());
pub const GETLINK: u64 = call(READ, 0x45, size_of::<LinkStatistics>());
