//! Whatever others do to the files of sinks while they are written: it is told, and nothing of it is called intact.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fadelink_receiver::Pool;
use fadelink_sinks::{Block, BlockKind, Error, Opening, Origin, Outlets, Report, Sender, Spec, Stopping};
use fadelink_wire::MacAddr;

mod harm;

use harm::HARMS;

const FEB: Sender = Sender::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));
const BYTES: usize = 8192;
/// The kinds of files, each with options that make other code write it; `roll` is that of a few blocks.
const KINDS: [&str; 6] =
    ["file:a", "file:a,direct", "file:a,preallocate=1M", "hdf5:a,every=0", "hashes:a", "file:a,roll=16K"];

/// Sinks in a folder, and what feeds them.
struct Sinks {
    outlets: Outlets<Block>,
    pool: Pool,
}

fn open(folder: &Path, specs: &[&str], durable: bool) -> Result<Sinks, Error> {
    let stopping = Stopping::default();
    let opening = Opening { board: FEB, run: "a run", stopping: &stopping, durable, resumed: None };
    let open = |text: &&str| {
        let mut spec: Spec<BlockKind> = text.parse().unwrap();
        spec.place = folder.join(&spec.place).to_str().unwrap().to_owned();
        spec.open(&opening)
    };
    let outlets = specs.iter().map(open).collect::<Result<_, _>>()?;
    Ok(Sinks { outlets: Outlets::new(outlets), pool: Pool::new(256).unwrap() })
}

impl Sinks {
    /// Writes blocks, and waits until they are written, or a sink has failed.
    fn write(&mut self, blocks: u64) {
        let before = self.outlets.reports()[0].written;
        for i in 0..blocks {
            self.pool.room().0[..BYTES].fill(i as u8);
            self.outlets.offer(&Block { data: self.pool.lend(BYTES, 0), origin: Origin::of(FEB) });
        }
        let is_written = |report: &Report| report.written >= before + blocks * BYTES as u64 || report.error.is_some();
        while !self.outlets.reports().iter().all(is_written) {
            std::thread::yield_now();
        }
    }

    fn finish(mut self) -> (Result<(), Error>, Vec<Report>) {
        (self.outlets.finish(true), self.outlets.reports())
    }
}

/// The file that is written now.
fn newest(folder: &Path) -> PathBuf {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_none_or(|end| end != "json")).max().unwrap()
}

#[test]
fn what_others_do_to_a_file_is_told() {
    for kind in KINDS {
        for (expected, harm) in HARMS {
            // Behind the last write, or between two.
            for more in [0, 3] {
                for durable in [false, true] {
                    if durable && !matches!(kind, "file:a" | "hashes:a") {
                        continue;
                    }
                    let top = tempfile::tempdir().unwrap();
                    let folder = top.path().join("folder");
                    fs::create_dir(&folder).unwrap();
                    let Ok(mut sinks) = open(&folder, &[kind], durable) else {
                        assert!(kind.ends_with("direct"), "{kind}");
                        continue;
                    };
                    sinks.write(3);
                    harm(&newest(&folder));
                    sinks.write(more);
                    let (result, reports) = sinks.finish();
                    let case = format!("{kind}, {expected}, {more} more, durable {durable}");
                    let error = result.err().unwrap_or_else(|| panic!("{case}: nothing")).to_string();
                    assert!(error.contains(expected), "{case}: {error}");
                    assert_eq!(reports[0].intact, 0, "{case}: {error}");
                    assert!(!error.contains("intact"), "{case}: {error}");
                }
            }
        }
    }
}

#[test]
fn files_before_the_one_that_is_written_count_too() {
    for kind in ["file:a,roll=8K", "hdf5:a,roll=8K"] {
        for (expected, harm) in HARMS {
            let top = tempfile::tempdir().unwrap();
            let folder = top.path().join("folder");
            fs::create_dir(&folder).unwrap();
            let mut sinks = open(&folder, &[kind], false).unwrap();
            sinks.write(4);
            harm(&folder.join("a"));
            let error = sinks.finish().0.err().unwrap_or_else(|| panic!("{kind}: {expected}")).to_string();
            assert!(error.contains(expected), "{kind}: {error}");
        }
    }
}

#[test]
fn what_was_harmed_behind_the_end_is_told_when_it_is_looked_at_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut sinks = open(folder.path(), &["file:a", "hdf5:b"], false).unwrap();
    sinks.write(3);
    let (result, mut reports) = sinks.finish();
    result.unwrap();
    File::create(folder.path().join("b")).unwrap();
    reports.iter_mut().for_each(Report::look_again);
    assert_eq!((&reports[0].error, reports[0].intact), (&None, 3 * BYTES as u64));
    assert!(reports[1].error.as_ref().is_some_and(|error| error.contains("b has 0 bytes instead of")), "{reports:?}");
}

#[test]
fn two_sinks_have_no_file_together() {
    for first in KINDS {
        for second in KINDS {
            let folder = tempfile::tempdir().unwrap();
            let second = second.replace(":a", ":./a");
            let error = open(folder.path(), &[first, &second], false).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            let is_told = error.contains("is being written by another sink") || error.contains("a exists");
            assert!(is_told || error.contains("no direct I/O"), "{first} {second}: {error}");
            // In another program it is the same: a lock is one of an open file.
            let opened = open(folder.path(), &[first], false);
            let error =
                open(folder.path(), &[&format!("{second},overwrite")], false).err().map(|error| error.to_string());
            assert!(
                opened.is_err() || error.is_some_and(|error| error.contains("is being written")),
                "{first} {second}"
            );
        }
    }
}

#[test]
fn the_next_file_is_not_one_of_somebody_else() {
    for kind in ["file", "hdf5"] {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("a.000002");
        let mut sinks = open(folder.path(), &[&format!("{kind}:a,roll=8K")], false).unwrap();
        fs::write(&other, "before").unwrap();
        sinks.write(5);
        let error = sinks.finish().0.unwrap_err().to_string();
        assert!(error.contains("a.000002 exists"), "{kind}: {error}");
        assert_eq!(fs::read_to_string(other).unwrap(), "before", "{kind}");
        assert!(error.ends_with("the 16384 bytes before are intact"), "{kind}: {error}");
    }
}

#[test]
fn the_description_of_another_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let description = folder.path().join("a.json");
    fs::write(&description, "{}").unwrap();
    let error = open(folder.path(), &["file:a"], false).err().unwrap().to_string();
    assert!(error.contains("a.json exists"), "{error}");
    assert_eq!(fs::read_to_string(description).unwrap(), "{}");
    assert!(open(folder.path(), &["file:a,overwrite"], false).is_ok());
}
