//! The transmissions that the data of a FADE board consists of: one, and another one each time that the board did not go on.

use std::io;
use std::path::{Path, PathBuf};

use fadelink_receiver::told::WordsCrc;
use fadelink_sinks::durable;
use fadelink_wire::Protocol;
use serde::{Deserialize, Serialize};

/// A transmission in the data of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transmission {
    /// Byte of the board's data where it begins.
    pub begin: u64,
    /// Its number, by which the board tells it from others; `None`: none is known.
    pub transmission: Option<u16>,
    /// What its data came by; `None`: none has come, or an earlier version of this program has written the list.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub protocol: Option<Protocol>,
    /// The CRC of its words that the board has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc: Option<WordsCrc>,
}

/// A protocol by its name.
mod by_name {
    use fadelink_wire::Protocol;
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(protocol: &Option<Protocol>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&protocol.map_or(String::new(), |protocol| protocol.to_string()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Protocol>, D::Error> {
        String::deserialize(from)?.parse().map(Some).map_err(Error::custom)
    }
}

/// The list as a file has it: the second line is the hash of the first.
fn sealed(all: &[Transmission]) -> io::Result<String> {
    let list = serde_json::to_string(all)?;
    Ok(format!("{list}\n{}\n", blake3::hash(list.as_bytes())))
}

/// The list in a file, if it is as it was written.
fn parse(text: &[u8]) -> io::Result<Vec<Transmission>> {
    let all: Vec<Transmission> = serde_json::from_slice(text.split(|byte| *byte == b'\n').next().unwrap_or_default())?;
    if sealed(&all)?.as_bytes() != text {
        return Err(io::Error::other("it is not as it was written: expected its hash in the second line"));
    }
    Ok(all)
}

/// Those that were begun, in their order.
#[derive(Debug, Default, Clone)]
pub struct Transmissions {
    /// Where a program that goes on finds them; `None`: none will.
    file: Option<PathBuf>,
    all: Vec<Transmission>,
}

impl Transmissions {
    /// None yet; each is to be written to `file` before it begins.
    pub fn to(file: PathBuf) -> Transmissions {
        Transmissions { file: Some(file), all: Vec::new() }
    }

    /// Those of the file, of data of which `bytes` bytes are certain.
    ///
    /// # Errors
    /// The operating system's, or another content.
    pub fn found(mut self, bytes: u64) -> io::Result<Transmissions> {
        let Some(file) = &self.file else { return Ok(self) };
        self.all = match std::fs::read(file) {
            Ok(text) => parse(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && bytes == 0 => Vec::new(),
            Err(error) => return Err(error),
        };
        for transmission in &mut self.all {
            // A disk may have lost what was on it.
            transmission.begin = transmission.begin.min(bytes);
        }
        Ok(self)
    }

    /// One begins at this byte of the data. It is on the disk when this returns: it may be lost from now on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn begin(&mut self, byte: u64) -> io::Result<()> {
        self.all.push(Transmission::at(byte));
        self.write()
    }

    /// The newest one has this number, and comes by this protocol. It is on the disk when this returns, before any of its data is.
    ///
    /// # Errors
    /// The operating system's.
    pub fn has_begun(&mut self, number: Option<u16>, protocol: Option<Protocol>) -> io::Result<()> {
        match self.all.last_mut() {
            Some(newest) if (newest.transmission, newest.protocol) != (number, protocol) => {
                (newest.transmission, newest.protocol) = (number, protocol);
            }
            _ => return Ok(()),
        }
        self.write()
    }

    /// The board has told the CRC of the newest one's words. It is on the disk when this returns, before the last of them are: the
    /// board may forget it then.
    ///
    /// # Errors
    /// The operating system's.
    pub fn has_crc(&mut self, crc: WordsCrc) -> io::Result<()> {
        match self.all.last_mut() {
            Some(newest) if newest.crc != Some(crc) => newest.crc = Some(crc),
            _ => return Ok(()),
        }
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        match &self.file {
            Some(file) => durable::replace(file, sealed(&self.all)?.as_bytes()).map(drop),
            None => Ok(()),
        }
    }

    /// Where a program that goes on finds them.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// All of them.
    pub fn all(&self) -> &[Transmission] {
        &self.all
    }

    /// The one that a board may go on with.
    pub fn newest(&self) -> Option<Transmission> {
        self.all.last().copied()
    }

    /// Byte behind which another one than the first was recorded; what the board still had of the first is lost.
    pub fn restarted(&self) -> Option<u64> {
        self.all.get(1).map(|second| second.begin)
    }
}

impl Transmission {
    fn at(begin: u64) -> Transmission {
        Transmission { begin, transmission: None, protocol: None, crc: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_goes_on_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = || Transmissions::to(folder.path().join("a.transmissions"));
        assert_eq!(file().found(0).unwrap().newest(), None, "nothing has begun");
        assert!(file().found(8192).is_err(), "there is data");
        let mut all = file();
        for (byte, restarted) in [(0, None), (16384, Some(16384)), (16384, Some(16384)), (24576, Some(16384))] {
            all.begin(byte).unwrap();
            all.has_begun(Some(3), Some(Protocol::Fade1)).unwrap();
            all.has_crc(WordsCrc { crc: byte as u32, filler_words: 3 }).unwrap();
            let found = file().found(24576).unwrap();
            assert_eq!((found.all(), found.restarted()), (all.all(), restarted));
        }
        // The disk has lost the end of the data.
        let newest = Some(WordsCrc { crc: 24576, filler_words: 3 });
        let found = file().found(8192).unwrap();
        let newest = Transmission {
            transmission: Some(3),
            protocol: Some(Protocol::Fade1),
            crc: newest,
            ..Transmission::at(8192)
        };
        assert_eq!((found.newest(), found.restarted()), (Some(newest), Some(8192)));
        let path = folder.path().join("a.transmissions");
        let content = std::fs::read(&path).unwrap();
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            for content in [&changed, &content[..at]] {
                std::fs::write(&path, content).unwrap();
                assert!(file().found(0).is_err(), "byte {at}");
            }
        }
    }
}
