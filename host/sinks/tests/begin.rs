//! A source that does not begin changes nothing, whatever its sinks are.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use fadelink_receiver::Pool;
use fadelink_sinks::{Block, BlockKind, Opening, Origin, Outlets, Sender, Spec, Stopping};
use fadelink_wire::MacAddr;

const FEB: Sender = Sender::Feb(MacAddr([2, 0xfa, 0xde, 0, 0, 1]));
const BEFORE: &str = "of the run before";
const KINDS: [&str; 5] = ["file:a", "file:a,roll=1M", "file:a,preallocate=1M", "hdf5:a", "hashes:a"];
/// What was there before, of files that one of the kinds makes.
const NAMES: [&str; 4] = ["a", "a.json", "a.part", "a.000001"];

fn open(folder: &Path, specs: &[&str]) -> Result<Outlets<Block>, String> {
    let stopping = Stopping::default();
    let opening = Opening { board: FEB, run: "a run", stopping: &stopping, durable: false, resumed: None };
    let open = |text: &&str| {
        let mut spec: Spec<BlockKind> = text.parse().unwrap();
        spec.place = folder.join(&spec.place).to_str().unwrap().to_owned();
        spec.open(&opening).map_err(|error| error.to_string())
    };
    Ok(Outlets::new(specs.iter().map(open).collect::<Result<_, _>>()?))
}

/// Names, content and times of all files.
fn content(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let of = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let found = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().modified().unwrap());
        (path.file_name().unwrap().to_str().unwrap().to_owned(), found)
    };
    fs::read_dir(folder).unwrap().map(of).collect()
}

#[test]
fn what_does_not_begin_changes_nothing() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        for ends in [true, false] {
            let mut outlets = open(folder.path(), &[kind]).unwrap();
            if ends {
                outlets.finish(true).unwrap();
            }
            assert!(outlets.reports()[0].error.is_none());
            drop(outlets);
            assert!(content(folder.path()).is_empty(), "{kind}: {:?}", content(folder.path()).keys());
        }
        // The first of two is open when the second one cannot be.
        let error = open(folder.path(), &[kind, "file:missing/b"]).err().unwrap();
        assert!(error.contains("mkdir -p") && content(folder.path()).is_empty(), "{kind}: {error}");
        for name in NAMES {
            fs::write(folder.path().join(name), BEFORE).unwrap();
        }
        let before = content(folder.path());
        drop(open(folder.path(), &[&format!("{kind},overwrite")]).unwrap());
        assert_eq!(content(folder.path()), before, "{kind}");
        let error = open(folder.path(), &[kind]).err().unwrap();
        assert!(error.contains("exists") && content(folder.path()) == before, "{kind}: {error}");
    }
}

#[test]
fn what_begins_replaces_what_it_may_replace() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES {
            fs::write(folder.path().join(name), BEFORE).unwrap();
        }
        let mut pool = Pool::new(16).unwrap();
        let mut outlets = open(folder.path(), &[&format!("{kind},overwrite")]).unwrap();
        outlets.begin();
        pool.room().0[..4096].fill(7);
        outlets.offer(&Block { data: pool.lend(4096, 0), origin: Origin::of(FEB) });
        outlets.finish(true).unwrap();
        let now = content(folder.path());
        assert!(!now["a"].0.is_empty() && !now["a"].0.starts_with(BEFORE.as_bytes()), "{kind}");
        let rolls = kind.contains("roll") || kind.starts_with("hdf5");
        assert_eq!(now.contains_key("a.000001"), !rolls, "{kind}: it is one of its own names");
        if kind.starts_with("file") {
            assert!(String::from_utf8_lossy(&now["a.json"].0).contains("\"complete\": true"), "{kind}");
        }
        assert_eq!(now.contains_key("a.part"), !kind.starts_with("hdf5"), "{kind}");
    }
}

/// It has begun, and had nothing to send.
#[test]
fn an_end_without_data_is_one() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let mut outlets = open(folder.path(), &[kind]).unwrap();
        outlets.begin();
        outlets.finish(true).unwrap();
        assert!(folder.path().join("a").exists(), "{kind}");
        assert_eq!(folder.path().join("a.json").exists(), kind.starts_with("file"), "{kind}");
        assert_eq!(outlets.reports()[0].made.len(), if kind.starts_with("file") { 2 } else { 1 }, "{kind}");
    }
}
