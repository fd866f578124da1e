//! FADE-10G (docs/protocol/fade10g.md): raw Ethernet 0xFADE, acknowledged data frames with early retransmission,
//! and user commands.
//!
//! Header fields are big-endian; data words are 64-bit little-endian.

use crate::block;
use crate::checksum;
use crate::ethernet::{self, Header, MacAddr};

pub use crate::block::BLOCK_MARK;
pub use crate::checksum::CHECKSUM_MARK;
pub use crate::resets::ResetBy;

/// Ethertype of FADE.
pub const ETHERTYPE: u16 = 0xFADE;
/// Version of FADE-10G, the u16 after the ethertype.
pub const VERSION: u16 = 0x0100;
/// Filler of unused bytes.
pub const FILLER: u8 = 0xA5;
/// Type of a full data frame.
pub const TYPE_DATA: u16 = 0xA5A5;
/// Type of the last data frame of a transmission.
pub const TYPE_LAST: u16 = 0xA5A6;
/// Type of a frame that carries a command response only.
pub const TYPE_RESPONSE: u16 = 0xA55A;

/// Command: start of transmission.
pub const CMD_START: u16 = 0x0001;
/// Command: end of transmission; the packet being filled becomes the last.
pub const CMD_STOP: u16 = 0x0002;
/// Acknowledgment of a packet; never a command.
pub const ACK: u16 = 0x0003;
/// Negative acknowledgment of a packet; never a command.
pub const NACK: u16 = 0x0004;
/// Command: the FEB forgets everything; not confirmed.
pub const CMD_RESET: u16 = 0x0005;
/// Command: the FEB tells what it is. Answered in a frame of its own, also when the request was
/// broadcast; it never touches the stored response. Fadelink's extension, for `discover`.
pub const CMD_IDENTIFY: u16 = 0x0006;
/// Command: the FEB tells who sent the last RESET since START. Answered as IDENTIFY, but not from broadcast, by a FEB that
/// counts RESETs.
pub const CMD_RESET_BY: u16 = 0x0007;
/// Bit of the flags of [`Identity`]: the FEB takes block ACKs.
pub const IDENTITY_BLOCK_ACKS: u8 = 4;
/// Bit of the flags of [`Identity`]: the FEB knows a last command.
pub const IDENTITY_CSN: u8 = 8;
/// Bit of the flags of [`Identity`]: the FEB counts RESETs, and answers [`CMD_RESET_BY`].
pub const IDENTITY_RESETS: u8 = 16;
/// Bit of the flags of [`Identity`]: the last packet has a CRC of all words, if START asks for it.
pub const IDENTITY_CHECKSUM: u8 = 32;
/// Bit of the flags of [`Identity`]: a packet that the FEB sends again has the same words.
pub const IDENTITY_SAME_WORDS: u8 = 64;
/// Bit of the argument of START: the CRC is asked for.
pub const START_CHECKSUM: u32 = 1;
/// Bit of the argument of START: it is obeyed only with the permit, which is above it.
pub const START_PERMIT: u32 = 2;
/// Bits below the permit, in the argument of START and in the answer.
pub const PERMIT_SHIFT: u32 = 2;
/// Answer to START: nothing was done, because this is not the permit; the right one is above it.
pub const STATUS_PERMIT: u64 = 3;
/// First code of the user commands.
pub const CMD_USER_FIRST: u16 = 0x0100;

/// Bytes of data in a packet.
pub const PACKET_BYTES: usize = 8192;
/// 64-bit words of data in a packet.
pub const PACKET_WORDS: usize = PACKET_BYTES / 8;
/// Most valid words of a last packet: the word after them holds their number.
pub const LAST_WORDS_MAX: u64 = PACKET_WORDS as u64 - 1;
/// Bytes of a data frame before the data.
pub const DATA_HEADER_LEN: usize = 40;
/// Bytes of a data frame without its frame check sequence.
pub const DATA_FRAME_LEN: usize = DATA_HEADER_LEN + PACKET_BYTES;
/// Bytes of a frame from the PC (64 after the Ethernet header).
pub const REQUEST_LEN: usize = ethernet::HEADER_LEN + 64;
/// Bytes of the named fields of a command response frame.
pub const RESPONSE_FIELDS_LEN: usize = 32;
/// Bytes on the wire that a data frame takes: with preamble, frame check sequence and gap.
pub const DATA_WIRE_BYTES: usize = 8 + DATA_FRAME_LEN + 4 + 12;

const COMMAND_FIELDS_LEN: usize = 24;
const ACK_FIELDS_LEN: usize = 28;

/// Why a frame is not FADE-10G. Every variant is a reason under which the frame is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The frame ends before the named field.
    #[error("frame of {len} bytes ends before its {field}: expected at least {expected} bytes")]
    Truncated {
        /// First field that is missing.
        field: &'static str,
        /// Length of the frame.
        len: usize,
        /// Shortest length that holds the field.
        expected: usize,
    },
    /// Another protocol.
    #[error("ethertype {0:#06x}: expected 0xfade")]
    EtherType(u16),
    /// Another version of FADE.
    #[error("version {0:#06x}: expected 0x0100")]
    Version(u16),
    /// Unknown frame type from a FEB.
    #[error("frame type {0:#06x}: expected 0xa5a5, 0xa5a6 or 0xa55a")]
    Type(u16),
    /// Unknown code from the PC.
    #[error("code {0:#06x}: expected 0x0001 to 0x0007, or a user command from 0x0100")]
    Code(u16),
    /// A data frame of a wrong length.
    #[error("data frame of {0} bytes: expected 8232")]
    Length(usize),
    /// A last packet that claims more words than it can hold.
    #[error("valid words {0:#018x} in the last packet: expected 0 to 1023, in either byte order")]
    ValidWords(u64),
}

/// A command response, alone or inside a data frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Code of the command that it answers.
    pub code: u16,
    /// Command sequence number (CSN) of the command that it answers.
    pub csn: u16,
    /// The value.
    pub value: u64,
}

impl Response {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    fn from_bytes(b: &[u8; Self::LEN]) -> Option<Response> {
        let [c0, c1, s0, s1, value @ ..] = *b;
        // All zero means that no response was pending; code 0 is never a command.
        let code = u16::from_be_bytes([c0, c1]);
        (code != 0).then(|| Response { code, csn: u16::from_be_bytes([s0, s1]), value: u64::from_be_bytes(value) })
    }

    fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..2].copy_from_slice(&self.code.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.csn.to_be_bytes());
        bytes[4..].copy_from_slice(&self.value.to_be_bytes());
        bytes
    }
}

/// A data frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// Frame sequence number: one more for each transmission.
    pub sequence: u16,
    /// Packet number.
    pub packet: u32,
    /// Transmission delay in clock cycles of the FEB's transmit side.
    pub delay: u32,
    /// Command response that rides in the frame.
    pub response: Option<Response>,
    /// Valid words, if this is the last packet of the transmission.
    pub last: Option<u64>,
    /// The packet, 8192 bytes; of a last packet the final word has the number of valid words.
    pub payload: &'a [u8],
}

/// What a FEB sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FebFrame<'a> {
    /// Data, full or last.
    Data(Data<'a>),
    /// A command response in a frame of its own; `None` if its fields are all zero.
    Response(Option<Response>),
}

/// What the PC sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// START, STOP, RESET, IDENTIFY, RESET BY or a user command.
    Command {
        /// Code.
        code: u16,
        /// Command sequence number.
        csn: u16,
        /// Argument.
        argument: u32,
    },
    /// ACK, or NACK if `negative`.
    Ack {
        /// True for a NACK.
        negative: bool,
        /// Sequence number of the frame that is answered.
        sequence: u16,
        /// Packet number.
        packet: u32,
        /// Transmission delay, repeated from the data frame.
        delay: u32,
        /// Of a block ACK: bit i is set if packet `packet - 1 - i` is stored, too.
        stored: Option<u64>,
    },
}

/// What a FEB of Fadelink reports about itself (docs/protocol/fade10g.md, IDENTIFY).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Packets of its window.
    pub window: u32,
    /// A transmission runs.
    pub running: bool,
    /// A transmission is being stopped.
    pub stopping: bool,
    /// It takes block ACKs.
    pub block_acks: bool,
    /// CSN of the command that it executed last, from any computer, and would take for a repetition. `None`: there is none
    /// since RESET.
    pub csn: Option<u16>,
    /// Number of its transmission, or of the last one: the CSN of the START that began it. 0: none has begun.
    pub transmission: u16,
    /// RESETs that it has obeyed since that START; 255: or more. `None`: it does not count them.
    pub resets: Option<u8>,
    /// Its last packet has a CRC of all words, if START asks for it.
    pub checksum: bool,
    /// A packet that it sends again has the same words.
    pub same_words: bool,
}

impl Identity {
    /// From the value of the response; `None` if its layout is unknown. The published core answers with 0.
    pub fn from_value(value: u64) -> Option<Identity> {
        let [layout, window, flags, c0, c1, t0, t1, resets] = value.to_be_bytes();
        (layout == 1 && window < 32).then(|| Identity {
            window: 1 << window,
            running: flags & 1 != 0,
            stopping: flags & 2 != 0,
            block_acks: flags & IDENTITY_BLOCK_ACKS != 0,
            csn: (flags & IDENTITY_CSN != 0).then_some(u16::from_be_bytes([c0, c1])),
            transmission: u16::from_be_bytes([t0, t1]),
            resets: (flags & IDENTITY_RESETS != 0).then_some(resets),
            checksum: flags & IDENTITY_CHECKSUM != 0,
            same_words: flags & IDENTITY_SAME_WORDS != 0,
        })
    }

    /// As [`Self::from_value`] reads it.
    pub fn to_value(self) -> u64 {
        let block_acks = if self.block_acks { IDENTITY_BLOCK_ACKS } else { 0 };
        let csn = if self.csn.is_some() { IDENTITY_CSN } else { 0 };
        let resets = if self.resets.is_some() { IDENTITY_RESETS } else { 0 };
        let checksum = if self.checksum { IDENTITY_CHECKSUM } else { 0 };
        let same_words = if self.same_words { IDENTITY_SAME_WORDS } else { 0 };
        let able = block_acks | csn | resets | checksum | same_words;
        let flags = u8::from(self.running) | u8::from(self.stopping) << 1 | able;
        let ([c0, c1], [t0, t1]) = (self.csn.unwrap_or(0).to_be_bytes(), self.transmission.to_be_bytes());
        u64::from_be_bytes([1, self.window.ilog2() as u8, flags, c0, c1, t0, t1, self.resets.unwrap_or(0)])
    }
}

fn field<const N: usize>(frame: &[u8], at: usize, field: &'static str) -> Result<[u8; N], Error> {
    frame.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or(Error::Truncated {
        field,
        len: frame.len(),
        expected: at + N,
    })
}

fn u16_at(frame: &[u8], at: usize, name: &'static str) -> Result<u16, Error> {
    field(frame, at, name).map(u16::from_be_bytes)
}

fn u32_at(frame: &[u8], at: usize, name: &'static str) -> Result<u32, Error> {
    field(frame, at, name).map(u32::from_be_bytes)
}

fn header(frame: &[u8]) -> Result<Header, Error> {
    let (header, _) = Header::split(frame).ok_or(Error::Truncated {
        field: "Ethernet header",
        len: frame.len(),
        expected: ethernet::HEADER_LEN,
    })?;
    if header.ethertype != ETHERTYPE {
        return Err(Error::EtherType(header.ethertype));
    }
    match u16_at(frame, 14, "version")? {
        VERSION => Ok(header),
        other => Err(Error::Version(other)),
    }
}

/// The number of valid words from the final word of a last packet, in either byte order: Fadelink's cores send it least
/// significant byte first, the published ones most significant byte first. One reading at most is in range. A CRC may be above it.
///
/// # Errors
/// [`Error::ValidWords`] if none is.
fn valid_words(bytes: [u8; 8]) -> Result<u64, Error> {
    let little = u64::from_le_bytes(bytes);
    if let Some((words, _)) = checksum::split_final(bytes) {
        let words = Some(u64::from(words)).filter(|words| *words <= LAST_WORDS_MAX);
        return words.ok_or(Error::ValidWords(little));
    }
    let words = if little > LAST_WORDS_MAX { u64::from_be_bytes(bytes) } else { little };
    if words > LAST_WORDS_MAX {
        return Err(Error::ValidWords(little));
    }
    Ok(words)
}

/// Parses a frame from a FEB.
///
/// # Errors
/// Every way in which the frame departs from the format; see [`Error`].
pub fn parse_feb(frame: &[u8]) -> Result<(Header, FebFrame<'_>), Error> {
    let header = header(frame)?;
    let kind = u16_at(frame, 16, "frame type")?;
    let body = match kind {
        TYPE_RESPONSE => FebFrame::Response(Response::from_bytes(&field(frame, 20, "command response")?)),
        TYPE_DATA | TYPE_LAST => {
            if frame.len() != DATA_FRAME_LEN {
                return Err(Error::Length(frame.len()));
            }
            let last = match kind {
                TYPE_LAST => Some(valid_words(field(frame, DATA_FRAME_LEN - 8, "valid words")?)?),
                _ => None,
            };
            FebFrame::Data(Data {
                sequence: u16_at(frame, 18, "frame sequence number")?,
                packet: u32_at(frame, 20, "packet number")?,
                delay: u32_at(frame, 24, "transmission delay")?,
                response: Response::from_bytes(&field(frame, 28, "command response")?),
                last,
                payload: frame.get(DATA_HEADER_LEN..).ok_or(Error::Length(frame.len()))?,
            })
        }
        other => return Err(Error::Type(other)),
    };
    Ok((header, body))
}

/// Parses a frame from the PC.
///
/// # Errors
/// Every way in which the frame departs from the format; see [`Error`].
pub fn parse_request(frame: &[u8]) -> Result<(Header, Request), Error> {
    let header = header(frame)?;
    let code = u16_at(frame, 16, "code")?;
    let request = match code {
        ACK | NACK => Request::Ack {
            negative: code == NACK,
            sequence: u16_at(frame, 18, "frame sequence number")?,
            packet: u32_at(frame, 20, "packet number")?,
            delay: u32_at(frame, 24, "transmission delay")?,
            stored: frame.get(ACK_FIELDS_LEN..).filter(|_| code == ACK).and_then(block::bits),
        },
        CMD_START | CMD_STOP | CMD_RESET | CMD_IDENTIFY | CMD_RESET_BY | CMD_USER_FIRST..=u16::MAX => {
            Request::Command {
                code,
                csn: u16_at(frame, 18, "command sequence number")?,
                argument: u32_at(frame, 20, "argument")?,
            }
        }
        other => return Err(Error::Code(other)),
    };
    Ok((header, request))
}

impl Request {
    /// The frame, without its frame check sequence, from `src` to `dst`.
    pub fn to_frame(self, dst: MacAddr, src: MacAddr) -> [u8; REQUEST_LEN] {
        let mut frame = [FILLER; REQUEST_LEN];
        frame[..14].copy_from_slice(&Header { dst, src, ethertype: ETHERTYPE }.to_bytes());
        frame[14..16].copy_from_slice(&VERSION.to_be_bytes());
        match self {
            Request::Command { code, csn, argument } => {
                frame[16..18].copy_from_slice(&code.to_be_bytes());
                frame[18..20].copy_from_slice(&csn.to_be_bytes());
                frame[20..COMMAND_FIELDS_LEN].copy_from_slice(&argument.to_be_bytes());
            }
            Request::Ack { negative, sequence, packet, delay, stored } => {
                let code = if negative { NACK } else { ACK };
                frame[16..18].copy_from_slice(&code.to_be_bytes());
                frame[18..20].copy_from_slice(&sequence.to_be_bytes());
                frame[20..24].copy_from_slice(&packet.to_be_bytes());
                frame[24..ACK_FIELDS_LEN].copy_from_slice(&delay.to_be_bytes());
                block::write(stored, &mut frame[ACK_FIELDS_LEN..]);
            }
        }
        frame
    }
}

/// The final word of a last packet: the number of valid words, and the CRC of all words, if that is told.
pub fn final_word(words: u16, crc: Option<u32>) -> [u8; 8] {
    crc.map_or(u64::from(words).to_le_bytes(), |crc| checksum::join_final(words, crc))
}

impl Data<'_> {
    /// The CRC of all words, if this is the last packet and tells it.
    pub fn checksum(&self) -> Option<u32> {
        let last = self.last.and(self.payload.last_chunk())?;
        checksum::split_final(*last).map(|(_, crc)| crc)
    }

    /// Writes the frame, without its frame check sequence. The payload is taken as it is: of a
    /// last packet its final word must already be as of [`final_word`].
    ///
    /// # Errors
    /// [`Error::Length`] if the payload is not 8192 bytes.
    pub fn write(&self, dst: MacAddr, src: MacAddr, out: &mut [u8; DATA_FRAME_LEN]) -> Result<(), Error> {
        if self.payload.len() != PACKET_BYTES {
            return Err(Error::Length(DATA_HEADER_LEN + self.payload.len()));
        }
        let (head, payload) = out.split_at_mut(DATA_HEADER_LEN);
        if let Ok(head) = head.try_into() {
            self.write_header(dst, src, head);
        }
        payload.copy_from_slice(self.payload);
        Ok(())
    }
}

impl Data<'_> {
    /// Writes all that comes before the payload.
    pub fn write_header(&self, dst: MacAddr, src: MacAddr, out: &mut [u8; DATA_HEADER_LEN]) {
        let kind = if self.last.is_some() { TYPE_LAST } else { TYPE_DATA };
        out[..14].copy_from_slice(&Header { dst, src, ethertype: ETHERTYPE }.to_bytes());
        out[14..16].copy_from_slice(&VERSION.to_be_bytes());
        out[16..18].copy_from_slice(&kind.to_be_bytes());
        out[20..24].copy_from_slice(&self.packet.to_be_bytes());
        write_changing_fields(out, self.sequence, self.delay, self.response);
    }
}

fn write_changing_fields(head: &mut [u8; DATA_HEADER_LEN], sequence: u16, delay: u32, response: Option<Response>) {
    head[18..20].copy_from_slice(&sequence.to_be_bytes());
    head[24..28].copy_from_slice(&delay.to_be_bytes());
    head[28..40].copy_from_slice(&response.map_or([0; 12], Response::to_bytes));
}

/// Sets the fields of a data frame that differ each time it is sent.
pub fn set_changing_fields(frame: &mut [u8; DATA_FRAME_LEN], sequence: u16, delay: u32, response: Option<Response>) {
    if let Some(head) = frame.first_chunk_mut() {
        write_changing_fields(head, sequence, delay, response);
    }
}

impl Response {
    /// A command response frame of the shortest length, without its frame check sequence.
    pub fn to_frame(self, dst: MacAddr, src: MacAddr) -> [u8; ethernet::MIN_LEN] {
        let mut frame = [FILLER; ethernet::MIN_LEN];
        frame[..14].copy_from_slice(&Header { dst, src, ethertype: ETHERTYPE }.to_bytes());
        frame[14..16].copy_from_slice(&VERSION.to_be_bytes());
        frame[16..18].copy_from_slice(&TYPE_RESPONSE.to_be_bytes());
        frame[20..RESPONSE_FIELDS_LEN].copy_from_slice(&self.to_bytes());
        frame
    }
}
