//! Ethernet II header: destination, source, ethertype.

use core::fmt;
use core::str::FromStr;

/// Bytes of the Ethernet II header.
pub const HEADER_LEN: usize = 14;
/// Shortest frame without its frame check sequence.
pub const MIN_LEN: usize = 60;

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The address of every station.
    pub const BROADCAST: MacAddr = MacAddr([0xFF; 6]);

    /// True for a group address (multicast or broadcast).
    pub const fn is_multicast(&self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six two-digit hexadecimal numbers joined by colons, or not the address of one station.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a unicast address, six two-digit hexadecimal bytes joined by colons, as 02:fa:de:00:00:01")]
pub struct BadMac;

/// The address of a station, as users give it.
impl FromStr for MacAddr {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Self, BadMac> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().ok_or(BadMac)?;
            if part.len() != 2 || !part.bytes().all(|c| c.is_ascii_hexdigit()) {
                return Err(BadMac);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| BadMac)?;
        }
        match parts.next() {
            None if bytes != [0; 6] && !MacAddr(bytes).is_multicast() => Ok(MacAddr(bytes)),
            _ => Err(BadMac),
        }
    }
}

/// The header of an Ethernet II frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub dst: MacAddr,
    /// Source address.
    pub src: MacAddr,
    /// Ethertype.
    pub ethertype: u16,
}

impl Header {
    /// Reads the header, and the rest of the frame. `None` if `frame` is shorter than a header.
    pub fn split(frame: &[u8]) -> Option<(Header, &[u8])> {
        let (head, rest) = frame.split_first_chunk::<HEADER_LEN>()?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *head;
        let header = Header {
            dst: MacAddr([d0, d1, d2, d3, d4, d5]),
            src: MacAddr([s0, s1, s2, s3, s4, s5]),
            ethertype: u16::from_be_bytes([t0, t1]),
        };
        Some((header, rest))
    }

    /// The header as it stands on the wire.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..6].copy_from_slice(&self.dst.0);
        bytes[6..12].copy_from_slice(&self.src.0);
        bytes[12..].copy_from_slice(&self.ethertype.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_text_round_trip() {
        let mac: MacAddr = "02:FA:de:00:00:01".parse().unwrap();
        assert_eq!(mac.to_string(), "02:fa:de:00:00:01");
    }

    #[test]
    fn bad_mac_text_is_refused() {
        for text in
            ["", "02:fa:de:00:00", "02:fa:de:00:00:01:02", "2:fa:de:0:0:1", "zz:fa:de:00:00:01", "+2:fa:de:00:00:01"]
        {
            assert!(text.parse::<MacAddr>().is_err(), "{text}");
        }
        for text in ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"] {
            assert!(text.parse::<MacAddr>().is_err(), "{text} is not the address of a station");
        }
    }
}
