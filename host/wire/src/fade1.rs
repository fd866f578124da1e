//! FADE v1 (docs/protocol/fade1.md): raw Ethernet 0xFADE at 1 Gb/s, sets of 32 packets of 1024 bytes.
//!
//! Header fields are big-endian; data words are 64-bit little-endian. Commands are not confirmed; Fadelink's cores answer
//! START, STOP, and IDENTIFY of FADE-10G, by the state of the transmission.

use crate::block;
use crate::checksum::Checksum;
use crate::ethernet::{self, Header, MacAddr};
use crate::permit::Permit;
use crate::resets::Resets;

pub use crate::fade10g::{BLOCK_MARK, CHECKSUM_MARK, ETHERTYPE, FILLER};
pub use crate::permit::PERMIT_MARK;
pub use crate::resets::STATE_RESETS;

/// Type of START, from the PC.
pub const TYPE_START: u16 = 0x0001;
/// Type of STOP, from the PC.
pub const TYPE_STOP: u16 = 0x0002;
/// Type of an acknowledgment, from the PC.
pub const TYPE_ACK: u16 = 0x0003;
/// Type of RESET (stop at once), from the PC.
pub const TYPE_RESET: u16 = 0x0005;
/// Type of a data frame, from a FEB.
pub const TYPE_DATA: u16 = 0xA5A5;
/// Type of a state frame, from a Fadelink board: the answer to START, STOP and IDENTIFY.
pub const TYPE_STATE: u16 = 0xA55A;

/// Bytes of data in a packet.
pub const PACKET_BYTES: usize = 1024;
/// Packets of a set.
pub const SET_PACKETS: u32 = 32;
/// Bits below the packet number in its field: the retry number, unused by the protocol.
pub const RETRY_BITS: u32 = 10;
/// What Fadelink's cores send as the retry number; the published ones send 0.
pub const RETRY_FADELINK: u16 = 0x2A5;
/// The highest bit above the delay, where the retry number is [`RETRY_FADELINK`]: the board takes block ACKs.
pub const TAKES_BLOCK_ACKS: u32 = 1 << 31;
/// The bit below it: a packet that the board sends again has the same words.
pub const SAME_WORDS: u32 = 1 << 30;
/// Bytes of an ACK up to the end of its fields.
const ACK_FIELDS_LEN: usize = 20;
/// Bytes of a data frame before the data.
pub const DATA_HEADER_LEN: usize = 24;
/// Bytes of a data frame without its frame check sequence.
pub const DATA_FRAME_LEN: usize = DATA_HEADER_LEN + PACKET_BYTES;
/// Bytes of a state frame without its frame check sequence; those behind its fields are filler.
pub const STATE_FRAME_LEN: usize = 64;
/// Bytes of a state frame up to the RESETs, which earlier boards do not have.
const STATE_FIELDS_LEN: usize = 24;
/// The same up to the CRC, which others do not have.
const STATE_RESETS_LEN: usize = STATE_FIELDS_LEN + Resets::LEN;
/// The same up to the permit, which earlier boards do not have either.
const STATE_CHECKSUM_LEN: usize = STATE_RESETS_LEN + Checksum::LEN;
/// Bytes of START up to the permit.
const START_FIELDS_LEN: usize = 18;
/// Bytes of a frame from the PC (64 after the Ethernet header).
pub const REQUEST_LEN: usize = ethernet::HEADER_LEN + 64;

/// Why a frame is not FADE v1. Every variant is a reason under which the frame is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The frame ends before the named field.
    #[error("frame of {len} bytes ends before its {field}")]
    Truncated {
        /// First field that is missing.
        field: &'static str,
        /// Length of the frame.
        len: usize,
    },
    /// Another protocol.
    #[error("ethertype {0:#06x}: expected 0xfade")]
    EtherType(u16),
    /// Another version of FADE: its number stands in the place of the type.
    #[error("version {0:#06x}: expected a type of FADE v1")]
    Version(u16),
    /// Unknown type, or one of the other direction.
    #[error("type {0:#06x}: expected 0xa5a5 or 0xa55a from a FEB, 0x0001, 0x0002, 0x0003 or 0x0005 from the PC")]
    Type(u16),
    /// A data frame of a wrong length.
    #[error("data frame of {0} bytes: expected 1048")]
    Length(usize),
    /// A packet number that no set has.
    #[error("packet {0} of a set: expected 0 to 31")]
    Packet(u8),
    /// A state that no board has.
    #[error("state {0} of a transmission: expected 0 to 4")]
    State(u16),
}

/// A frame from a FEB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FebFrame<'a> {
    /// A packet.
    Data(Data<'a>),
    /// The answer to START, STOP or IDENTIFY.
    State(State),
}

/// A data frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// Set number.
    pub set: u16,
    /// Number of the packet in its set, 0 to 31.
    pub packet: u8,
    /// Retry number, 10 bits: [`RETRY_FADELINK`] tells a Fadelink board.
    pub retry: u16,
    /// Transmission delay in clock cycles of the FEB's transmit side: 30 bits of a Fadelink board.
    pub delay: u32,
    /// The FEB takes block ACKs.
    pub block_acks: bool,
    /// A packet that the FEB sends again has the same words.
    pub same_words: bool,
    /// The packet, 1024 bytes.
    pub payload: &'a [u8],
}

/// Where a transmission is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Phase {
    /// There was none since the board was switched on.
    None = 0,
    /// It goes on.
    Running = 1,
    /// It goes on until every packet is confirmed.
    Stopping = 2,
    /// It ended because of STOP, and every packet was confirmed.
    Ended = 3,
    /// RESET ended it.
    Reset = 4,
}

impl Phase {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Phase::None => "idle",
            Phase::Running => "running",
            Phase::Stopping => "stopping",
            Phase::Ended => "ended",
            Phase::Reset => "reset",
        }
    }
}

/// What a Fadelink board reports on its current or last transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Where it is.
    pub phase: Phase,
    /// The number that its START had.
    pub transmission: u16,
    /// Packets that it has sent, modulo 2^32.
    pub packets: u32,
    /// RESETs that the board has obeyed since that START; `None`: it does not count them.
    pub resets: Option<Resets>,
    /// The CRC of all words; `None`: the board has none, or the transmission has not ended by STOP.
    pub checksum: Option<Checksum>,
    /// The permit to begin a transmission, if there is one now; `None`: the board gives none.
    pub permit: Option<Permit>,
}

/// What the PC sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Begins a transmission.
    Start {
        /// Its number, which the computer chooses. Published programs send filler there.
        transmission: u16,
        /// The permit with which alone it is to be obeyed; `None`: it is to be obeyed without.
        permit: Option<Permit>,
    },
    /// Ends it when all that was taken is confirmed.
    Stop,
    /// Ends it at once.
    Reset,
    /// Confirms a packet.
    Ack {
        /// Set number.
        set: u16,
        /// Number of the packet in its set, 0 to 63 on the wire.
        packet: u8,
        /// Of a block ACK: bit i tells that the packet 1 + i before this one is stored.
        stored: Option<u64>,
    },
}

fn field<const N: usize>(frame: &[u8], at: usize, field: &'static str) -> Result<[u8; N], Error> {
    let rest = frame.get(at..).and_then(|rest| rest.first_chunk::<N>());
    rest.copied().ok_or(Error::Truncated { field, len: frame.len() })
}

fn u16_at(frame: &[u8], at: usize, name: &'static str) -> Result<u16, Error> {
    field(frame, at, name).map(u16::from_be_bytes)
}

fn header(frame: &[u8]) -> Result<(Header, u16), Error> {
    let (header, _) = Header::split(frame).ok_or(Error::Truncated { field: "Ethernet header", len: frame.len() })?;
    if header.ethertype != ETHERTYPE {
        return Err(Error::EtherType(header.ethertype));
    }
    match u16_at(frame, 14, "type")? {
        version @ crate::fade10g::VERSION => Err(Error::Version(version)),
        kind => Ok((header, kind)),
    }
}

/// Parses a frame from a FEB.
///
/// # Errors
/// Every way in which the frame departs from the format; see [`Error`].
pub fn parse_feb(frame: &[u8]) -> Result<(Header, FebFrame<'_>), Error> {
    let (header, kind) = header(frame)?;
    let body = match kind {
        TYPE_DATA => FebFrame::Data(parse_data(frame)?),
        TYPE_STATE => FebFrame::State(State::parse(frame)?),
        _ => return Err(Error::Type(kind)),
    };
    Ok((header, body))
}

fn parse_data(frame: &[u8]) -> Result<Data<'_>, Error> {
    if frame.len() != DATA_FRAME_LEN {
        return Err(Error::Length(frame.len()));
    }
    let field_of_packet = u16_at(frame, 18, "packet number")?;
    let packet = (field_of_packet >> RETRY_BITS) as u8;
    if u32::from(packet) >= SET_PACKETS {
        return Err(Error::Packet(packet));
    }
    let retry = field_of_packet & ((1 << RETRY_BITS) - 1);
    let delay = u32::from_be_bytes(field(frame, 20, "transmission delay")?);
    let flags = if retry == RETRY_FADELINK { delay & (TAKES_BLOCK_ACKS | SAME_WORDS) } else { 0 };
    Ok(Data {
        set: u16_at(frame, 16, "set number")?,
        packet,
        retry,
        delay: delay & !flags,
        block_acks: flags & TAKES_BLOCK_ACKS != 0,
        same_words: flags & SAME_WORDS != 0,
        payload: frame.get(DATA_HEADER_LEN..).ok_or(Error::Length(frame.len()))?,
    })
}

/// Parses a frame from the PC.
///
/// # Errors
/// Every way in which the frame departs from the format; see [`Error`].
pub fn parse_request(frame: &[u8]) -> Result<(Header, Request), Error> {
    let (header, kind) = header(frame)?;
    let request = match kind {
        TYPE_START => Request::Start {
            transmission: u16_at(frame, 16, "transmission").unwrap_or(u16::from_be_bytes([FILLER; 2])),
            permit: field(frame, START_FIELDS_LEN, "permit").ok().and_then(Permit::from_start),
        },
        TYPE_STOP => Request::Stop,
        TYPE_RESET => Request::Reset,
        TYPE_ACK => Request::Ack {
            set: u16_at(frame, 16, "set number")?,
            packet: (u16_at(frame, 18, "packet number")? >> RETRY_BITS) as u8,
            stored: frame.get(ACK_FIELDS_LEN..).and_then(block::bits),
        },
        other => return Err(Error::Type(other)),
    };
    Ok((header, request))
}

impl Request {
    /// The frame, without its frame check sequence, from `src` to `dst`.
    pub fn to_frame(self, dst: MacAddr, src: MacAddr) -> [u8; REQUEST_LEN] {
        let mut frame = [FILLER; REQUEST_LEN];
        frame[..14].copy_from_slice(&Header { dst, src, ethertype: ETHERTYPE }.to_bytes());
        let kind = match self {
            Request::Start { transmission, permit } => {
                frame[16..START_FIELDS_LEN].copy_from_slice(&transmission.to_be_bytes());
                if let Some(permit) = permit {
                    frame[START_FIELDS_LEN..][..Permit::START_LEN].copy_from_slice(&permit.to_start());
                }
                TYPE_START
            }
            Request::Stop => TYPE_STOP,
            Request::Reset => TYPE_RESET,
            Request::Ack { set, packet, stored } => {
                frame[16..18].copy_from_slice(&set.to_be_bytes());
                frame[18..20].copy_from_slice(&(u16::from(packet) << RETRY_BITS).to_be_bytes());
                block::write(stored, &mut frame[ACK_FIELDS_LEN..]);
                TYPE_ACK
            }
        };
        frame[14..16].copy_from_slice(&kind.to_be_bytes());
        frame
    }
}

impl Data<'_> {
    /// Writes all that comes before the payload.
    pub fn write_header(&self, dst: MacAddr, src: MacAddr, out: &mut [u8; DATA_HEADER_LEN]) {
        out[..14].copy_from_slice(&Header { dst, src, ethertype: ETHERTYPE }.to_bytes());
        out[14..16].copy_from_slice(&TYPE_DATA.to_be_bytes());
        out[16..18].copy_from_slice(&self.set.to_be_bytes());
        out[18..20].copy_from_slice(&(u16::from(self.packet) << RETRY_BITS | self.retry).to_be_bytes());
        let block_acks = if self.block_acks { TAKES_BLOCK_ACKS } else { 0 };
        let same_words = if self.same_words { SAME_WORDS } else { 0 };
        out[20..24].copy_from_slice(&(self.delay | block_acks | same_words).to_be_bytes());
    }
}

impl State {
    fn parse(frame: &[u8]) -> Result<State, Error> {
        let phase = match u16_at(frame, 16, "state")? {
            0 => Phase::None,
            1 => Phase::Running,
            2 => Phase::Stopping,
            3 => Phase::Ended,
            4 => Phase::Reset,
            other => return Err(Error::State(other)),
        };
        Ok(State {
            phase,
            transmission: u16_at(frame, 18, "number of the transmission")?,
            packets: u32::from_be_bytes(field(frame, 20, "number of packets")?),
            resets: field(frame, STATE_FIELDS_LEN, "RESETs").ok().and_then(Resets::from_bytes),
            checksum: field(frame, STATE_RESETS_LEN, "CRC").ok().and_then(Checksum::from_bytes),
            permit: field(frame, STATE_CHECKSUM_LEN, "permit").ok().and_then(Permit::from_state),
        })
    }

    /// The frame, without its frame check sequence, from `src` to `dst`.
    pub fn to_frame(self, dst: MacAddr, src: MacAddr) -> [u8; STATE_FRAME_LEN] {
        let mut frame = [FILLER; STATE_FRAME_LEN];
        frame[..14].copy_from_slice(&Header { dst, src, ethertype: ETHERTYPE }.to_bytes());
        frame[14..16].copy_from_slice(&TYPE_STATE.to_be_bytes());
        frame[16..18].copy_from_slice(&(self.phase as u16).to_be_bytes());
        frame[18..20].copy_from_slice(&self.transmission.to_be_bytes());
        frame[20..STATE_FIELDS_LEN].copy_from_slice(&self.packets.to_be_bytes());
        if let Some(resets) = self.resets {
            frame[STATE_FIELDS_LEN..STATE_RESETS_LEN].copy_from_slice(&resets.to_bytes());
        }
        if let Some(checksum) = self.checksum {
            frame[STATE_RESETS_LEN..STATE_CHECKSUM_LEN].copy_from_slice(&checksum.to_bytes());
        }
        if let Some(permit) = self.permit {
            frame[STATE_CHECKSUM_LEN..][..Permit::STATE_LEN].copy_from_slice(&permit.to_state());
        }
        frame
    }
}
