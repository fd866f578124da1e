//! Where events go: files of hits, ZeroMQ. A sink that is slow holds the builder up, and that the crates.

use std::str::FromStr;

use crate::Event;

mod hdf5;
mod parquet;
mod table;
mod writer;
mod zmq;

pub use writer::Run;
use writer::{Result, Sink};

/// Why a sink could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{sink}: {what}")]
pub struct Error {
    /// The sink, as its user wrote it.
    pub sink: String,
    /// What happened.
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hdf5,
    Parquet,
    Publish,
    Push,
}

/// A sink as its user writes it: `KIND:PLACE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    text: String,
    kind: Kind,
    place: String,
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Spec, String> {
        let expected = "expected hdf5:PATH, parquet:PATH, zmq-pub:ENDPOINT or zmq-push:ENDPOINT";
        let (kind, place) = text.split_once(':').filter(|(_, place)| !place.is_empty()).ok_or(expected)?;
        let kind = match kind {
            "hdf5" => Kind::Hdf5,
            "parquet" => Kind::Parquet,
            "zmq-pub" => Kind::Publish,
            "zmq-push" => Kind::Push,
            other => return Err(format!("sink `{other}`: {expected}")),
        };
        if matches!(kind, Kind::Publish | Kind::Push) && !place.contains("://") {
            return Err(format!("endpoint `{place}`: expected one as tcp://127.0.0.1:5555 or ipc:///path"));
        }
        Ok(Spec { text: text.to_owned(), kind, place: place.to_owned() })
    }
}

impl Spec {
    /// Opens the sink.
    ///
    /// # Errors
    /// The file or the endpoint is not to be had.
    pub fn open(&self, run: Run) -> std::result::Result<OpenSink, Error> {
        let open = || -> Result<Box<dyn Sink>> {
            Ok(match self.kind {
                Kind::Hdf5 => Box::new(hdf5::Hdf5Sink::create(&self.place, run)?),
                Kind::Parquet => Box::new(parquet::ParquetSink::create(&self.place, run)?),
                Kind::Publish => Box::new(zmq::ZmqSink::bind(&self.place, run, false)?),
                Kind::Push => Box::new(zmq::ZmqSink::bind(&self.place, run, true)?),
            })
        };
        match open() {
            Ok(sink) => Ok(OpenSink { name: self.text.clone(), sink }),
            Err(error) => Err(Error { sink: self.text.clone(), what: error.to_string() }),
        }
    }
}

/// A sink that is open; its errors say which one it is.
pub struct OpenSink {
    name: String,
    sink: Box<dyn Sink>,
}

impl OpenSink {
    fn named<T>(&self, result: Result<T>) -> std::result::Result<T, Error> {
        result.map_err(|error| Error { sink: self.name.clone(), what: error.to_string() })
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// It could not be written; nothing more is to be tried.
    pub fn write(&mut self, event: &Event) -> std::result::Result<(), Error> {
        let result = self.sink.write(event);
        self.named(result)
    }

    /// Writes what waits in memory.
    ///
    /// # Errors
    /// As of `write`.
    pub fn flush(&mut self) -> std::result::Result<(), Error> {
        let result = self.sink.flush();
        self.named(result)
    }

    /// No more comes.
    ///
    /// # Errors
    /// As of `write`.
    pub fn finish(&mut self) -> std::result::Result<(), Error> {
        let result = self.sink.finish();
        self.named(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications() {
        assert_eq!("hdf5:a.h5".parse::<Spec>().unwrap().place, "a.h5");
        assert_eq!("zmq-pub:tcp://*:5555".parse::<Spec>().unwrap().place, "tcp://*:5555");
        for wrong in ["", "hdf5", "hdf5:", "tape:x", "zmq-push:5555"] {
            assert!(wrong.parse::<Spec>().is_err(), "{wrong}");
        }
    }
}
