//! Sinks by their names on a command line: a kind of sink is a line of each `match` here, and a module.

use std::io;
use std::str::FromStr;

use fadelink_wire::MacAddr;

use crate::sink::{Block, Sink};
use crate::{file, hdf5, share};

/// Why a sink could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{sink}: {what} (the {written} bytes before are intact)")]
pub struct Error {
    /// The sink, as its user wrote it.
    pub sink: String,
    /// What happened, and what to do.
    pub what: String,
    /// Bytes that were written before.
    pub written: u64,
}

/// A sink as its user writes it: `KIND:PATH[,OPTION...]`. `{feb}` in the path stands for the FEB's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    text: String,
    kind: Kind,
    path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File { direct: bool, preallocate: u64 },
    Hdf5,
    Share { wait: bool },
}

/// A number of bytes, with K, M, G or T for powers of 1024.
fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec, String> {
        let expected = "expected file:PATH[,direct][,preallocate=SIZE], hdf5:PATH or share:PATH[,wait]";
        let (kind, rest) = text.split_once(':').ok_or(expected)?;
        let mut parts = rest.split(',');
        let path = parts.next().filter(|path| !path.is_empty()).ok_or(expected)?.to_owned();
        let mut kind = match kind {
            "file" => Kind::File { direct: false, preallocate: 0 },
            "hdf5" => Kind::Hdf5,
            "share" => Kind::Share { wait: false },
            other => return Err(format!("sink `{other}`: {expected}")),
        };
        for option in parts {
            match (&mut kind, option.split_once('=').unwrap_or((option, ""))) {
                (Kind::File { direct, .. }, ("direct", "")) => *direct = true,
                (Kind::File { preallocate, .. }, ("preallocate", bytes)) => {
                    *preallocate = size(bytes)
                        .filter(|bytes| *bytes > 0 && *bytes < 1 << 50)
                        .ok_or_else(|| format!("preallocate `{bytes}`: expected a size like 512M or 1G"))?;
                }
                (Kind::Share { wait }, ("wait", "")) => *wait = true,
                _ => return Err(format!("option `{option}`: {expected}")),
            }
        }
        Ok(Spec { text: text.to_owned(), kind, path })
    }
}

impl std::fmt::Display for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Spec {
    /// True if each FEB has a path of its own.
    pub fn is_per_feb(&self) -> bool {
        self.path.contains("{feb}")
    }

    /// Opens the sink for `feb`.
    ///
    /// # Errors
    /// The file, or what it is, cannot be opened; the message says why.
    pub fn open(&self, feb: MacAddr) -> Result<OpenSink, Error> {
        let path = self.path.replace("{feb}", &feb.to_string().replace(':', "-"));
        let open = || -> io::Result<Box<dyn Sink>> {
            Ok(match self.kind {
                Kind::File { direct, preallocate } => {
                    Box::new(file::FileSink::create(&path, direct, preallocate, feb)?)
                }
                Kind::Hdf5 => Box::new(hdf5::Hdf5Sink::create(&path, feb)?),
                Kind::Share { wait } => Box::new(share::ShareSink::bind(&path, wait)?),
            })
        };
        let name = self.text.clone();
        match open() {
            Ok(sink) => Ok(OpenSink { name, sink, written: 0 }),
            Err(error) => Err(Error { sink: name, what: error.to_string(), written: 0 }),
        }
    }
}

/// A sink that is open; its errors say which one it is.
pub struct OpenSink {
    name: String,
    sink: Box<dyn Sink>,
    written: u64,
}

impl OpenSink {
    /// See [`Sink::write`].
    ///
    /// # Errors
    /// As there, with the sink's name.
    pub fn write(&mut self, block: &Block<'_>) -> Result<(), Error> {
        self.sink.write(block).map_err(|error| self.error(&error))?;
        self.written += block.data.len() as u64;
        Ok(())
    }

    /// See [`Sink::finish`].
    ///
    /// # Errors
    /// As there, with the sink's name.
    pub fn finish(&mut self, complete: bool) -> Result<(), Error> {
        self.sink.finish(complete).map_err(|error| self.error(&error))
    }

    fn error(&self, error: &io::Error) -> Error {
        let hint = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => "; make space or choose another place",
            _ => "",
        };
        Error { sink: self.name.clone(), what: format!("{error}{hint}"), written: self.written }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications() {
        let spec: Spec = "file:/data/{feb}.dat,direct,preallocate=2G".parse().unwrap();
        assert_eq!(spec.kind, Kind::File { direct: true, preallocate: 2 << 30 });
        assert!(spec.is_per_feb());
        assert_eq!("share:x,wait".parse::<Spec>().unwrap().kind, Kind::Share { wait: true });
        assert!(!"hdf5:a.h5".parse::<Spec>().unwrap().is_per_feb());
        let wrong = [
            "",
            "file",
            "file:",
            "tape:x",
            "hdf5:x,direct",
            "file:x,preallocate=",
            "file:x,preallocate=9Z",
            "file:x,preallocate=0",
            "file:x,preallocate=99999999T",
            "share:x,direct",
            "file:x,",
        ]; // one a case
        for text in wrong {
            assert!(text.parse::<Spec>().is_err(), "{text}");
        }
    }
}
