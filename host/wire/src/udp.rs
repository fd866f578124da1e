//! Datagrams of the UDP/IP stack (docs/protocol/udp.md): the stream and slow control.
//!
//! Header fields are big-endian; data words are 64-bit little-endian.

/// Bytes of a stream datagram before its words.
pub const STREAM_HEADER_BYTES: usize = 8;
/// Flag: no words; the counter is the number of datagrams of the run.
pub const FLAG_END: u8 = 0x01;
/// What stands behind the words up to the payload's size.
pub const FILLER: u8 = 0xA5;
/// Most bytes of a payload, of MTU 9000.
pub const PAYLOAD_MAX: usize = 8972;

/// Bytes of a request and a reply of the slow control.
pub const CONTROL_BYTES: usize = 16;
/// Port of the slow control.
pub const CONTROL_PORT: u16 = 10001;
/// Operation: read a register.
pub const CONTROL_READ: u8 = 0x01;
/// Operation: write a register.
pub const CONTROL_WRITE: u8 = 0x02;
/// With the operation: a reply to it.
pub const CONTROL_REPLY: u8 = 0x80;
/// Status: done.
pub const STATUS_DONE: u8 = 0x00;
/// Status: no such operation.
pub const STATUS_OPERATION: u8 = 0x01;
/// Status: no such register, or it cannot be written (now, or with this value).
pub const STATUS_ADDRESS: u8 = 0x02;

/// Register: [`IDENTITY`].
pub const REGISTER_IDENTITY: u32 = 0x8000_0000;
/// Register: 1 while the stream is enabled.
pub const REGISTER_ENABLE: u32 = 0x8000_0001;
/// Register: IPv4 address that the stream goes to.
pub const REGISTER_PEER_IP: u32 = 0x8000_0002;
/// Register: port that the stream goes to.
pub const REGISTER_PEER_PORT: u32 = 0x8000_0003;
/// Register: bytes of a stream datagram's payload.
pub const REGISTER_PAYLOAD: u32 = 0x8000_0004;
/// Register: 1 if the stream's datagrams have checksums.
pub const REGISTER_CHECKSUM: u32 = 0x8000_0005;
/// The bit of it that counts. The board keeps the others as they were written, until it loses its power.
pub const CHECKSUM_BIT: u32 = 1;
/// Register: number of this run.
pub const REGISTER_RUN: u32 = 0x8000_0006;
/// Register: datagrams of the run before.
pub const REGISTER_LAST: u32 = 0x8000_0007;
/// The registers of a stream, from [`REGISTER_ENABLE`] to [`REGISTER_LAST`], have its number (0 to 7) in three bits from this one up.
pub const REGISTER_STREAM_BIT: u32 = 9;
/// Register: role of PTP: 0 off, 1 slave, 2 master, 3 by the best master clock algorithm.
pub const REGISTER_PTP_ROLE: u32 = 0x8000_0010;
/// Register: 1 while the slave follows its master within a microsecond.
pub const REGISTER_PTP_LOCKED: u32 = 0x8000_0011;
/// Register: the slave's offset from its master in ns, signed.
pub const REGISTER_PTP_OFFSET: u32 = 0x8000_0012;
/// Register: delay of the path in ns, signed.
pub const REGISTER_PTP_DELAY: u32 = 0x8000_0013;
/// Register: what is added to the clock's step, in 2^-32 ns, signed.
pub const REGISTER_PTP_RATE: u32 = 0x8000_0014;
/// Register: seconds of the clock; a read keeps the nanoseconds of its moment.
pub const REGISTER_PTP_SECONDS: u32 = 0x8000_0015;
/// Register: nanoseconds of the moment in which the seconds were read.
pub const REGISTER_PTP_NS: u32 = 0x8000_0016;
/// Register: clocks between two Sync of a master, at least 1000.
pub const REGISTER_PTP_CLOCKS: u32 = 0x8000_0017;
/// Register: logarithm of the seconds between two Sync, as a master tells it, signed.
pub const REGISTER_PTP_LOG: u32 = 0x8000_0018;
/// Register: state of the port, by table 8 of IEEE 1588.
pub const REGISTER_PTP_STATE: u32 = 0x8000_0019;
/// Register: domain of PTP.
pub const REGISTER_PTP_DOMAIN: u32 = 0x8000_001A;
/// Register: 0 UDP, 1 Ethernet.
pub const REGISTER_PTP_TRANSPORT: u32 = 0x8000_001B;
/// Register: mechanism of the delay: 1 end to end, 2 peer to peer.
pub const REGISTER_PTP_MECHANISM: u32 = 0x8000_001C;
/// Register: priority1 and priority2, 8 bit each.
pub const REGISTER_PTP_PRIORITIES: u32 = 0x8000_001D;
/// Register: source of this clock's time 8, flags 8, offset to UTC 16.
pub const REGISTER_PTP_UTC: u32 = 0x8000_001E;
/// Register: class 8, accuracy 8, variance 16 of this clock.
pub const REGISTER_PTP_QUALITY: u32 = 0x8000_001F;
/// Register: as [`REGISTER_PTP_UTC`], of the master.
pub const REGISTER_PTP_UTC_USED: u32 = 0x8000_0020;
/// Register: steps from the grandmaster.
pub const REGISTER_PTP_STEPS: u32 = 0x8000_0021;
/// First register of the core's counters.
pub const REGISTER_COUNTERS: u32 = 0x8000_0100;
/// Value of [`REGISTER_IDENTITY`].
pub const IDENTITY: u32 = 0xFADE_0D10;

/// Why a payload is not of this format. Every variant is a reason under which the datagram is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The payload ends before its header.
    #[error("payload of {0} bytes: expected at least its header of {1}")]
    Truncated(usize, usize),
    /// The header promises more words than there are.
    #[error("payload of {len} bytes: too short for its {words} words")]
    Words {
        /// Words by the header.
        words: u16,
        /// Bytes of the payload.
        len: usize,
    },
    /// Flags that nobody has defined, or words at the end of a run.
    #[error("flags {0:#04x}: expected 0, or 1 without words")]
    Flags(u8),
    /// Not a request or a reply of the slow control.
    #[error("operation {0:#04x}: expected 0x01 or 0x02 in a request, 0x81 or 0x82 in a reply")]
    Operation(u8),
}

/// A datagram of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Number of the datagram in its run, from 0; at the end of a run: how many there were.
    pub counter: u32,
    /// Number of the run, modulo 256.
    pub run: u8,
    /// The run is over.
    pub end: bool,
    /// The words, 8 bytes each, little-endian.
    pub words: &'a [u8],
}

fn chunk<const N: usize>(payload: &[u8], at: usize) -> Option<[u8; N]> {
    payload.get(at..)?.first_chunk().copied()
}

impl<'a> Datagram<'a> {
    /// Parses a payload.
    ///
    /// # Errors
    /// Every way in which the payload departs from the format; see [`Error`].
    pub fn parse(payload: &'a [u8]) -> Result<Datagram<'a>, Error> {
        let short = Error::Truncated(payload.len(), STREAM_HEADER_BYTES);
        let counter = chunk(payload, 0).map(u32::from_be_bytes).ok_or(short)?;
        let count = chunk(payload, 4).map(u16::from_be_bytes).ok_or(short)?;
        let [run, flags] = chunk(payload, 6).ok_or(short)?;
        let end = flags == FLAG_END;
        if (flags != 0 && !end) || (end && count != 0) {
            return Err(Error::Flags(flags));
        }
        let words = payload
            .get(STREAM_HEADER_BYTES..STREAM_HEADER_BYTES + 8 * usize::from(count))
            .ok_or(Error::Words { words: count, len: payload.len() })?;
        Ok(Datagram { counter, run, end, words })
    }

    /// What is before the words in the payload.
    pub fn header(&self) -> [u8; STREAM_HEADER_BYTES] {
        let mut bytes = [0; STREAM_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.counter.to_be_bytes());
        bytes[4..6].copy_from_slice(&((self.words.len() / 8) as u16).to_be_bytes());
        (bytes[6], bytes[7]) = (self.run, if self.end { FLAG_END } else { 0 });
        bytes
    }
}

/// What a client asks of the slow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the client; the same one again is a repetition, and nothing is done again.
    pub sequence: u32,
    /// Register.
    pub address: u32,
    /// What to write; none: read.
    pub write: Option<u32>,
}

impl Request {
    /// The payload.
    pub fn to_bytes(&self) -> [u8; CONTROL_BYTES] {
        let mut bytes = [0; CONTROL_BYTES];
        bytes[..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4] = if self.write.is_some() { CONTROL_WRITE } else { CONTROL_READ };
        bytes[8..12].copy_from_slice(&self.address.to_be_bytes());
        bytes[12..].copy_from_slice(&self.write.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// Parses a payload.
    ///
    /// # Errors
    /// The payload is too short, or neither a read nor a write.
    pub fn parse(payload: &[u8]) -> Result<Request, Error> {
        let short = Error::Truncated(payload.len(), CONTROL_BYTES);
        let word = |at| chunk(payload, at).map(u32::from_be_bytes).ok_or(short);
        let (sequence, address, value) = (word(0)?, word(8)?, word(12)?);
        let write = match payload[4] {
            CONTROL_READ => None,
            CONTROL_WRITE => Some(value),
            operation => return Err(Error::Operation(operation)),
        };
        Ok(Request { sequence, address, write })
    }

    /// The payload of the reply to this.
    pub fn reply(&self, status: u8, value: u32) -> [u8; CONTROL_BYTES] {
        let mut bytes = self.to_bytes();
        bytes[4] |= CONTROL_REPLY;
        bytes[5] = status;
        bytes[12..].copy_from_slice(&value.to_be_bytes());
        bytes
    }
}

/// The slow control's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Of the request.
    pub sequence: u32,
    /// [`STATUS_DONE`] or what was wrong.
    pub status: u8,
    /// Register.
    pub address: u32,
    /// What was read or written.
    pub value: u32,
}

impl Reply {
    /// Parses a payload.
    ///
    /// # Errors
    /// The payload is too short, or not a reply.
    pub fn parse(payload: &[u8]) -> Result<Reply, Error> {
        let short = Error::Truncated(payload.len(), CONTROL_BYTES);
        let word = |at| chunk(payload, at).map(u32::from_be_bytes).ok_or(short);
        let (sequence, address, value) = (word(0)?, word(8)?, word(12)?);
        let [operation, status] = chunk(payload, 4).ok_or(short)?;
        if operation & CONTROL_REPLY == 0 {
            return Err(Error::Operation(operation));
        }
        Ok(Reply { sequence, status, address, value })
    }
}
