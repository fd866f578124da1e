//! The kinds of block sinks by name: each is a line in each `match` here, and a module.

use std::time::Duration;

use fadelink_receiver::Pool;
use fadelink_wire::fade10g::PACKET_BYTES;

use crate::block::{Block, BLOCK_BYTES};
use crate::file::{FileSink, PlainFile};
use crate::hashes::{Blocks, HashSink};
#[cfg(feature = "hdf5")]
use crate::hdf5::WordsSink;
#[cfg(feature = "kafka")]
use crate::kafka::{KafkaSink, Topic, Words};
use crate::options::Options;
use crate::origin::Sender;
use crate::outlet::{describe, Copy, Error, Outlet};
use crate::output::check_name;
use crate::parts::FileOptions;
use crate::places::Places;
use crate::share::ShareSink;
use crate::sink::{Item, Result, Sink, Stopping};
use crate::spec::{Kind, Spec};
use crate::stored::{Files, Stored};
use crate::streams;
use crate::terms::{Policy, Terms};

/// How old a file of a format becomes that cannot be read before it is finished: what a crash costs.
#[cfg(feature = "hdf5")]
pub const EVERY: Duration = Duration::from_secs(60);
/// File descriptors of a client of Kafka: connections to brokers, and what wakes its threads.
#[cfg(feature = "kafka")]
const CLIENT: u64 = 16;
/// What may wait for a sink of `policy=drop`.
const QUEUE: u64 = 16 << 20;

/// A sink of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Plain files.
    File(PlainFile),
    /// Standard output.
    Stdout,
    /// HDF5 files.
    #[cfg(feature = "hdf5")]
    Hdf5(FileOptions),
    /// Hashes of the data.
    Hashes {
        /// A file of an earlier run is replaced.
        overwrite: bool,
    },
    /// A topic of Apache Kafka.
    #[cfg(feature = "kafka")]
    Kafka,
    /// Other programs on this computer.
    Share {
        /// The first block waits for a first reader.
        wait: bool,
    },
}

impl Kind for BlockKind {
    const EXPECTED: &'static str =
        "file:PATH[,direct][,preallocate=SIZE], hdf5:PATH (both [,roll=SIZE][,every=SECONDS][,overwrite]), \
                                    hashes:PATH[,overwrite], kafka:HOST:PORT/TOPIC or share:PATH[,wait]; all [,policy=drop[,queue=SIZE]][,optional]";
    const LEFT_OUT: &'static [&'static str] = &[
        #[cfg(not(feature = "hdf5"))]
        "hdf5",
        #[cfg(not(feature = "kafka"))]
        "kafka",
    ];
    const WAITS_AT_THE_SOURCE: bool = true;

    #[cfg_attr(not(feature = "kafka"), expect(unused_variables))]
    fn parse(name: &str, place: &str, options: &mut Options<'_>) -> std::result::Result<Option<BlockKind>, String> {
        Ok(Some(match name {
            "file" => BlockKind::File(PlainFile {
                direct: options.flag("direct")?,
                preallocate: options.size("preallocate")?.unwrap_or(0),
                files: FileOptions::parse(options, None)?,
            }),
            #[cfg(feature = "hdf5")]
            "hdf5" => BlockKind::Hdf5(FileOptions::parse(options, Some(EVERY))?),
            "hashes" => BlockKind::Hashes { overwrite: options.flag("overwrite")? },
            #[cfg(feature = "kafka")]
            "kafka" => {
                place.parse::<Topic>()?;
                BlockKind::Kafka
            }
            "share" => BlockKind::Share { wait: options.flag("wait")? },
            _ => return Ok(None),
        }))
    }

    fn is_path(&self) -> bool {
        match self {
            #[cfg(feature = "kafka")]
            BlockKind::Kafka => false,
            _ => true,
        }
    }

    fn places(&self, place: &str) -> Vec<Places> {
        match self {
            BlockKind::Stdout => Vec::new(),
            _ if !self.is_path() => Vec::new(),
            _ => vec![Places::new(place, self.files().is_some_and(|files| files.rolls()))],
        }
    }
}

impl BlockKind {
    /// How it names files of words, if it writes any.
    pub fn files(&self) -> Option<FileOptions> {
        match self {
            BlockKind::File(plain) => Some(plain.files),
            #[cfg(feature = "hdf5")]
            BlockKind::Hdf5(files) => Some(*files),
            _ => None,
        }
    }
}

/// Copies blocks to a ring of their own, so that the source's is free.
fn copier(queue: u64) -> std::io::Result<Copy<Block>> {
    let packets = queue.max(2 * BLOCK_BYTES as u64).div_ceil(PACKET_BYTES as u64).next_power_of_two();
    let mut pool = Pool::new(packets)?;
    Ok(Box::new(move |block| {
        let bytes = block.data.len();
        if !pool.wait(bytes, Duration::ZERO) {
            return None;
        }
        pool.room().0[..bytes].copy_from_slice(&block.data);
        Some(Block { data: pool.lend(bytes, 0), origin: block.origin })
    }))
}

/// What a sink is opened for.
pub struct Opening<'a> {
    /// Whose data it is.
    pub board: Sender,
    /// Name of the run: no other one has it.
    pub run: &'a str,
    /// The end was asked for.
    pub stopping: &'a Stopping,
    /// Its data is kept until it is safe.
    pub durable: bool,
    /// It goes on behind this data.
    pub resumed: Option<&'a Blocks>,
}

impl Spec<BlockKind> {
    /// A plain file (`-`: standard output) that its user did not write as a sink.
    ///
    /// # Errors
    /// The path is not one for data.
    pub fn file(text: String, path: &str, overwrite: bool) -> std::result::Result<Spec<BlockKind>, String> {
        let kind = if path == "-" {
            BlockKind::Stdout
        } else {
            check_name(path)?;
            BlockKind::File(PlainFile {
                files: FileOptions { overwrite, ..FileOptions::default() },
                ..PlainFile::default()
            })
        };
        Ok(Spec { text, kind, place: path.to_owned(), policy: Policy::Wait, optional: false, queue: None })
    }

    /// True if each board has a place of its own; `key` stands in it, in braces ([`Sender::key`]).
    pub fn is_per_board(&self, key: &str) -> bool {
        self.place.contains(&format!("{{{key}}}"))
    }

    /// Whether what it has taken can be confirmed to the board only when it is safe ([`Sink::sync`]); else why not.
    ///
    /// # Errors
    /// What was expected.
    pub fn check_durable(&self) -> std::result::Result<(), String> {
        match self.kind {
            _ if self.optional => Ok(()),
            BlockKind::File(PlainFile { direct: true, .. }) => Err("option `direct`: expected none of it".into()),
            BlockKind::File(_) if self.policy == Policy::Drop => Err("policy `drop`: expected wait".into()),
            BlockKind::File(_) | BlockKind::Hashes { .. } | BlockKind::Share { .. } => Ok(()),
            #[cfg(feature = "kafka")]
            BlockKind::Kafka => Ok(()),
            _ => Err("expected file or kafka, or share beside it".into()),
        }
    }

    /// True if what it has taken survives a power cut, and is to do so.
    pub fn is_durable(&self) -> bool {
        let is_safe = match self.kind {
            BlockKind::File(_) => true,
            #[cfg(feature = "kafka")]
            BlockKind::Kafka => true,
            _ => false,
        };
        is_safe && self.policy == Policy::Wait && !self.optional
    }

    /// File descriptors that it takes for a board.
    pub fn descriptors(&self) -> u64 {
        let own = match self.kind {
            #[cfg(feature = "kafka")]
            BlockKind::Kafka => CLIENT,
            _ => 1,
        };
        // The ring for copies.
        own + u64::from(self.policy == Policy::Drop)
    }

    /// What it has of the words of a run, in their order: `place` is where it has those of a board. `None`: it has none that
    /// can be read as they came.
    ///
    /// # Errors
    /// It cannot be reached.
    #[cfg_attr(not(feature = "kafka"), expect(unused_variables))]
    pub fn stored(&self, place: &str, run: &str) -> Result<Option<Box<dyn Stored>>> {
        Ok(match self.kind {
            BlockKind::File(plain) => Some(Box::new(Files::new(place, plain.files))),
            #[cfg(feature = "kafka")]
            BlockKind::Kafka => Some(Box::new(Words::connect(place.parse()?, run)?)),
            _ => None,
        })
    }

    /// Where it has the data of a board.
    fn path(&self, board: Sender) -> String {
        self.place.replace(&format!("{{{}}}", board.key()), &board.in_names())
    }

    /// Whether it can go on in a run that goes on: nobody has waited for an optional sink.
    fn check_resumed(&self, opening: &Opening<'_>) -> Result {
        let Some(end) = opening.resumed.filter(|_| self.optional).map(Blocks::end) else { return Ok(()) };
        match self.stored(&self.path(opening.board), opening.run)? {
            None if matches!(self.kind, BlockKind::Share { .. }) => Ok(()),
            None => Err("it cannot go on after a crash".into()),
            Some(stored) => match stored.end()? {
                has if has < end => Err(format!("it has {has} bytes of the run, which goes on behind {end}").into()),
                _ => Ok(()),
            },
        }
    }

    fn sink(&self, opening: &Opening<'_>) -> Result<Box<dyn Sink<Block>>> {
        let Opening { board, resumed, stopping, .. } = *opening;
        self.check_resumed(opening)?;
        let path = self.path(board);
        Ok(match self.kind {
            BlockKind::File(plain) => {
                let file = streams::when_read(stopping, || match resumed {
                    Some(blocks) => FileSink::resume(&path, plain, board, blocks.end()),
                    None => FileSink::create(&path, plain, board),
                });
                Box::new(file?.until(stopping)?)
            }
            BlockKind::Stdout => {
                streams::check_output()?;
                Box::new(FileSink::stdout(board)?.until(stopping)?)
            }
            #[cfg(feature = "hdf5")]
            BlockKind::Hdf5(files) => Box::new(WordsSink::create(&path, files, board)?),
            BlockKind::Hashes { overwrite } => {
                let hashes = streams::when_read(stopping, || match resumed {
                    Some(blocks) => HashSink::resume(path.as_ref(), blocks.clone()),
                    None => HashSink::create(path.as_ref(), overwrite),
                });
                Box::new(hashes?.with(opening.durable))
            }
            #[cfg(feature = "kafka")]
            BlockKind::Kafka => {
                let end = resumed.map(Blocks::end);
                Box::new(KafkaSink::open(path.parse()?, opening.run, opening.stopping.clone(), end)?)
            }
            BlockKind::Share { wait } => Box::new(ShareSink::bind(&path, wait, opening.stopping.clone())?),
        })
    }

    /// Opens the sink. An optional one that cannot go on in a run that goes on has failed, and the run begins without it.
    ///
    /// # Errors
    /// The file, or what it is, cannot be opened; the message says why.
    pub fn open(&self, opening: &Opening<'_>) -> std::result::Result<Outlet<Block>, Error> {
        let (capacity, copies) = match self.policy {
            // It is the ring that bounds what waits.
            Policy::Wait => (u64::MAX, None),
            Policy::Drop => (self.queue.unwrap_or(QUEUE), Some(self.queue.unwrap_or(QUEUE))),
        };
        // A transaction that failed is written again.
        let durable = opening.durable || !self.kind.is_path();
        let terms = Terms { policy: self.policy, capacity, durable, optional: self.optional };
        let open = || -> Result<Outlet<Block>> {
            let copy = copies.map(copier).transpose()?;
            Ok(Outlet::start(&self.text, terms, copy, self.sink(opening)?)?)
        };
        open().or_else(|failure| match describe(&failure) {
            what if self.optional && opening.resumed.is_some() => Ok(Outlet::failed(&self.text, terms, what)),
            what => Err(Error { sink: self.text.clone(), what, intact: 0, unit: Block::UNIT }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> std::result::Result<Spec<BlockKind>, String> {
        text.parse()
    }

    #[test]
    fn specifications() {
        let spec = parse("file:/data/{feb}.dat,direct,preallocate=2G,roll=1T,every=0.5,overwrite").unwrap();
        let files = FileOptions { roll: Some(1 << 40), every: Some(Duration::from_millis(500)), overwrite: true };
        assert_eq!(spec.kind, BlockKind::File(PlainFile { direct: true, preallocate: 2 << 30, files }));
        assert!(spec.is_per_board("feb") && !spec.is_per_board("stream"));
        assert_eq!(parse("share:x,wait").unwrap().kind, BlockKind::Share { wait: true });
        let hdf5 = parse("hdf5:a.h5,policy=drop,queue=4M").unwrap();
        assert_eq!(hdf5.kind, BlockKind::Hdf5(FileOptions { every: Some(EVERY), ..FileOptions::default() }));
        assert_eq!((hdf5.policy, hdf5.queue, hdf5.optional), (Policy::Drop, Some(4 << 20), false));
        assert!(parse("share:x,optional").unwrap().optional);
        assert_eq!(parse("hdf5:a.h5,every=0").unwrap().kind, BlockKind::Hdf5(FileOptions::default()));
        for (text, named) in [
            ("", "file:PATH"),
            ("file", "file:PATH"),
            ("file:", "file:PATH"),
            ("tape:x", "tape"),
            ("hdf5:x,direct", "`direct`"),
            ("file:x,preallocate=", "preallocate ``"),
            ("file:x,preallocate", "preallocate=VALUE"),
            ("file:x,preallocate=9Z", "9Z"),
            ("file:x,preallocate=0", "size"),
            ("file:x,preallocate=99999999T", "size"),
            ("file:x,direct=yes", "direct=yes"),
            ("file:x,roll=5x", "roll `5x`"),
            ("hdf5:x,every=-1", "every `-1`"),
            ("share:x,direct", "`direct`"),
            #[cfg(feature = "kafka")]
            ("kafka:one/x", "`one/x`: expected HOST:PORT/TOPIC"),
            ("share:x,roll=1G", "`roll=1G`"),
            ("file:x,policy=maybe", "policy `maybe`: expected wait or drop"),
            ("file:x,queue=1M", "policy=drop"),
            ("file:x,", "option ``"),
            ("file:a/x.part", "`a/x.part`: names that end in `.part`"),
            ("file:a/", "`a/`: it is the name of a folder"),
            ("share:a/..", "`a/..`: it is the name of a folder"),
            ("hdf5:.", "`.`: it is the name of a folder"),
            ("file:a\0b", "`a\\0b`: it has a zero byte"),
            ("share:x.json", "`x.json`: names that end in `.json`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
