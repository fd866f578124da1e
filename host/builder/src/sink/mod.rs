//! Where events go: files of hits, ZeroMQ. What all sinks have, their threads, queues and options, is of `fadelink_sinks`.

use std::time::Duration;

use fadelink_sinks::{Error, Item, Kind, Options, Outlet, Roll, Sink};

mod hdf5;
mod item;
mod parquet;
mod table;
mod zmq;

pub use item::{Run, SharedEvent};

/// How old a file becomes: what a crash costs.
const EVERY: Duration = Duration::from_secs(60);
/// What may wait for a sink, in bytes.
const QUEUE: u64 = 64 << 20;

/// A sink of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// HDF5 files.
    Hdf5(Roll),
    /// Parquet files.
    Parquet(Roll),
    /// A ZeroMQ PUB socket.
    Publish,
    /// A ZeroMQ PUSH socket.
    Push,
}

/// A sink as its user writes it.
pub type Spec = fadelink_sinks::Spec<EventKind>;

impl Kind for EventKind {
    const EXPECTED: &'static str = "hdf5:PATH, parquet:PATH (both [,roll=SIZE][,every=SECONDS]), zmq-pub:ENDPOINT or \
                                    zmq-push:ENDPOINT; all [,policy=drop][,queue=SIZE]";
    const WAITS_AT_THE_SOURCE: bool = false;

    fn parse(name: &str, place: &str, options: &mut Options<'_>) -> Result<Option<EventKind>, String> {
        let kind = match name {
            "hdf5" => EventKind::Hdf5(Roll::of(options, Some(EVERY))?),
            "parquet" => EventKind::Parquet(Roll::of(options, Some(EVERY))?),
            "zmq-pub" => EventKind::Publish,
            "zmq-push" => EventKind::Push,
            _ => return Ok(None),
        };
        if matches!(kind, EventKind::Publish | EventKind::Push) && !place.contains("://") {
            return Err(format!("endpoint `{place}`: expected one as tcp://127.0.0.1:5555 or ipc:///path"));
        }
        Ok(Some(kind))
    }
}

/// Opens a sink.
///
/// # Errors
/// The file or the endpoint is not to be had.
pub fn open(spec: &Spec, run: &Run) -> Result<Outlet<SharedEvent>, Error> {
    let open = || -> fadelink_sinks::Result<Outlet<SharedEvent>> {
        let sink: Box<dyn Sink<SharedEvent>> = match spec.kind {
            EventKind::Hdf5(roll) => Box::new(hdf5::Hdf5Sink::create(&spec.place, roll, run)?),
            EventKind::Parquet(roll) => Box::new(parquet::ParquetSink::create(&spec.place, roll, run)?),
            EventKind::Publish => Box::new(zmq::ZmqSink::bind(&spec.place, run, false)?),
            EventKind::Push => Box::new(zmq::ZmqSink::bind(&spec.place, run, true)?),
        };
        Ok(Outlet::start(&spec.text, spec.policy, spec.queue.unwrap_or(QUEUE), None, sink)?)
    };
    open().map_err(|failure| Error {
        sink: spec.text.clone(),
        what: failure.to_string(),
        intact: 0,
        unit: SharedEvent::UNIT,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications() {
        let spec: Spec = "hdf5:a.h5,roll=2G".parse().unwrap();
        assert_eq!(
            (&*spec.place, spec.kind),
            ("a.h5", EventKind::Hdf5(Roll { size: Some(2 << 30), every: Some(EVERY) }))
        );
        let spec: Spec = "zmq-pub:tcp://*:5555,policy=drop,queue=1M".parse().unwrap();
        assert_eq!((&*spec.place, spec.queue), ("tcp://*:5555", Some(1 << 20)));
        for wrong in ["", "hdf5", "hdf5:", "tape:x", "zmq-push:5555", "zmq-push:ipc://x,roll=1G"] {
            assert!(wrong.parse::<Spec>().is_err(), "{wrong}");
        }
    }
}
