//! Sinks of events: files of messages and of hits, ZeroMQ. `fadelink_sinks` has the common parts: threads, queues and options.

use std::path::PathBuf;

use fadelink_sinks::{Error, FileOptions, Item, Kind, Options, Outlet, Parts, Places, Sink, Terms};

#[cfg(feature = "hdf5")]
mod hdf5;
mod item;
mod messages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(any(feature = "hdf5", feature = "parquet"))]
mod table;
#[cfg(feature = "zmq")]
mod zmq;

pub use item::{Run, SharedEvent};
use messages::MessagesSink;

/// How old a file becomes: what a crash costs.
#[cfg(any(feature = "hdf5", feature = "parquet"))]
const EVERY: std::time::Duration = std::time::Duration::from_secs(60);
/// What may wait for a sink, in bytes.
const QUEUE: u64 = 64 << 20;

/// A sink of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Plain files of messages.
    Messages(FileOptions),
    /// HDF5 files.
    #[cfg(feature = "hdf5")]
    Hdf5(FileOptions),
    /// Parquet files.
    #[cfg(feature = "parquet")]
    Parquet(FileOptions),
    /// A ZeroMQ PUB socket.
    #[cfg(feature = "zmq")]
    Publish,
    /// A ZeroMQ PUSH socket.
    #[cfg(feature = "zmq")]
    Push,
}

/// A sink as its user writes it.
pub type Spec = fadelink_sinks::Spec<EventKind>;

/// That a socket of ZeroMQ can be bound to: an address or an interface with a port, or a path.
#[cfg(feature = "zmq")]
fn is_endpoint(place: &str) -> bool {
    match place.split_once("://") {
        Some(("tcp", place)) => place.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && (port == "*" || port.parse().is_ok_and(|port: u16| port > 0))
        }),
        Some(("ipc", path)) => !path.is_empty(),
        _ => false,
    }
}

impl Kind for EventKind {
    const EXPECTED: &'static str =
        "file:PATH, hdf5:PATH, parquet:PATH (all three [,roll=SIZE][,every=SECONDS][,overwrite]), zmq-pub:ENDPOINT or \
                                    zmq-push:ENDPOINT; all [,policy=drop][,queue=SIZE][,optional]";
    const LEFT_OUT: &'static [&'static str] = &[
        #[cfg(not(feature = "hdf5"))]
        "hdf5",
        #[cfg(not(feature = "parquet"))]
        "parquet",
        #[cfg(not(feature = "zmq"))]
        "zmq",
    ];
    const WAITS_AT_THE_SOURCE: bool = false;

    #[cfg_attr(not(feature = "zmq"), expect(unused_variables))]
    fn parse(name: &str, place: &str, options: &mut Options<'_>) -> Result<Option<EventKind>, String> {
        Ok(Some(match name {
            "file" => EventKind::Messages(FileOptions::parse(options, None)?),
            #[cfg(feature = "hdf5")]
            "hdf5" => EventKind::Hdf5(FileOptions::parse(options, Some(EVERY))?),
            #[cfg(feature = "parquet")]
            "parquet" => EventKind::Parquet(FileOptions::parse(options, Some(EVERY))?),
            #[cfg(feature = "zmq")]
            "zmq-pub" | "zmq-push" => {
                if !is_endpoint(place) {
                    return Err(format!(
                        "endpoint `{place}`: expected an endpoint like tcp://127.0.0.1:5555 or ipc:///path"
                    ));
                }
                if name == "zmq-pub" {
                    EventKind::Publish
                } else {
                    EventKind::Push
                }
            }
            _ => return Ok(None),
        }))
    }

    fn is_path(&self) -> bool {
        match self {
            EventKind::Messages(_) => true,
            #[cfg(feature = "hdf5")]
            EventKind::Hdf5(_) => true,
            #[cfg(feature = "parquet")]
            EventKind::Parquet(_) => true,
            #[cfg(feature = "zmq")]
            EventKind::Publish | EventKind::Push => false,
        }
    }

    fn places(&self, place: &str) -> Vec<Places> {
        match self {
            EventKind::Messages(files) => vec![Places::new(place, files.rolls())],
            #[cfg(feature = "hdf5")]
            EventKind::Hdf5(files) => vec![Places::new(place, files.rolls())],
            #[cfg(feature = "parquet")]
            EventKind::Parquet(files) => parquet::places(place, *files).into(),
            #[cfg(feature = "zmq")]
            EventKind::Publish | EventKind::Push => Vec::new(),
        }
    }
}

/// The files that a sink has made and finished, in their order, as they are found.
pub fn found(spec: &Spec) -> Vec<PathBuf> {
    match spec.kind {
        EventKind::Messages(files) => Parts::found(&spec.place, files),
        #[cfg(feature = "hdf5")]
        EventKind::Hdf5(files) => Parts::found(&spec.place, files),
        #[cfg(feature = "parquet")]
        EventKind::Parquet(files) => {
            let hits = Parts::found(&spec.place, files);
            hits.into_iter().flat_map(|hits| [hits.clone(), parquet::windows(&hits)]).collect()
        }
        #[cfg(feature = "zmq")]
        EventKind::Publish | EventKind::Push => Vec::new(),
    }
}

/// Opens a sink.
///
/// # Errors
/// The file or the endpoint cannot be opened.
#[cfg_attr(not(any(feature = "hdf5", feature = "parquet", feature = "zmq")), expect(unused_variables))]
pub fn open(spec: &Spec, run: &Run) -> Result<Outlet<SharedEvent>, Error> {
    let open = || -> fadelink_sinks::Result<Outlet<SharedEvent>> {
        let queue = spec.queue.unwrap_or(QUEUE);
        let sink: Box<dyn Sink<SharedEvent>> = match spec.kind {
            EventKind::Messages(files) => Box::new(MessagesSink::create(&spec.place, files)?),
            #[cfg(feature = "hdf5")]
            EventKind::Hdf5(files) => Box::new(hdf5::Hdf5Sink::create(&spec.place, files, run)?),
            #[cfg(feature = "parquet")]
            EventKind::Parquet(files) => Box::new(parquet::ParquetSink::create(&spec.place, files, run)?),
            #[cfg(feature = "zmq")]
            EventKind::Publish => Box::new(zmq::ZmqSink::bind(&spec.place, run, false, queue)?),
            #[cfg(feature = "zmq")]
            EventKind::Push => Box::new(zmq::ZmqSink::bind(&spec.place, run, true, queue)?),
        };
        let terms = Terms { policy: spec.policy, capacity: queue, durable: false, optional: spec.optional };
        Ok(Outlet::start(&spec.text, terms, None, sink)?)
    };
    open().map_err(|failure| Error {
        sink: spec.text.clone(),
        what: fadelink_sinks::describe(&failure),
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
            ("a.h5", EventKind::Hdf5(FileOptions { roll: Some(2 << 30), every: Some(EVERY), overwrite: false }))
        );
        let spec: Spec = "zmq-pub:tcp://*:5555,policy=drop,queue=1M".parse().unwrap();
        assert_eq!((&*spec.place, spec.queue), ("tcp://*:5555", Some(1 << 20)));
        for place in ["tcp://[::1]:5555", "tcp://eth0:*", "ipc://x"] {
            assert!(format!("zmq-push:{place}").parse::<Spec>().is_ok(), "{place}");
        }
        for wrong in [
            "",
            "hdf5",
            "hdf5:",
            "tape:x",
            "zmq-push:5555",
            "zmq-push:ipc://x,roll=1G",
            "zmq-pub:tcp://",
            "zmq-pub:tcp://*",
            "zmq-pub:tcp://a:70000",
            "zmq-pub:tcp://:5555",
            "zmq-pub:ipc://",
            "zmq-pub:udp://a:5555",
        ] {
            assert!(wrong.parse::<Spec>().is_err(), "{wrong}");
        }
    }
}
