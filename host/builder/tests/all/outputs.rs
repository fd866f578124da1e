//! Files of events: what others do to them is told, and none is shared (host/sinks/tests/outputs.rs has the other sinks).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fadelink_builder::sink::{self, Run, SharedEvent, Spec};
use fadelink_builder::Event;
use fadelink_sinks::{Error, Outlets, Report};

use crate::harm::HARMS;

/// With the names of their files.
const KINDS: [(&str, &[&str]); 3] = [
    ("file:a", &["a"]),
    ("hdf5:a,every=0", &["a"]),
    ("parquet:a.parquet,every=0", &["a.parquet", "a.windows.parquet"]),
];

fn open(folder: &Path, specs: &[&str]) -> Result<Outlets<SharedEvent>, Error> {
    let run = Run { builder_id: 1, window_ticks: 1024, stopping: Arc::default(), turned_away: |_| {} };
    let open = |text: &&str| {
        let mut spec: Spec = text.parse().unwrap();
        spec.place = folder.join(&spec.place).to_str().unwrap().to_owned();
        sink::open(&spec, &run)
    };
    Ok(Outlets::new(specs.iter().map(open).collect::<Result<_, _>>()?))
}

fn write(outlets: &mut Outlets<SharedEvent>, events: u64) {
    for record in 0..events {
        let parts = vec![vec![0; 64].into_boxed_slice()];
        let event = Event { record, time: (1, 0), parts, missing: Vec::new(), is_late: false };
        outlets.offer(&SharedEvent(Arc::new(event)));
    }
    let is_written = |report: &Report| report.queued_bytes == 0;
    while !outlets.reports().iter().all(is_written) {
        std::thread::yield_now();
    }
}

/// Waits until nothing is written to a file any more: what is written again later has not been harmed.
fn stands_still(path: &Path) {
    let state = || fs::metadata(path).map(|found| (found.len(), found.modified().unwrap())).unwrap();
    let mut before = state();
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = state();
        if now == before {
            return;
        }
        before = now;
    }
}

#[test]
fn what_others_do_to_a_file_is_told() {
    for (kind, names) in KINDS {
        for name in names {
            for (expected, harm) in HARMS {
                let top = tempfile::tempdir().unwrap();
                let folder = top.path().join("folder");
                fs::create_dir(&folder).unwrap();
                let mut outlets = open(&folder, &[kind]).unwrap();
                write(&mut outlets, 10);
                let path = folder.join(format!("{name}.part"));
                // Rows are written in groups, and messages together.
                while fs::metadata(&path).unwrap().len() == 0 {
                    write(&mut outlets, 1);
                    std::thread::sleep(Duration::from_millis(10));
                }
                stands_still(&path);
                harm(&path);
                write(&mut outlets, 10);
                let error =
                    outlets.finish(true).err().unwrap_or_else(|| panic!("{kind}, {name}: {expected}")).to_string();
                assert!(error.contains(expected), "{kind}, {name}, {expected}: {error}");
                assert_eq!(outlets.reports()[0].intact, 0, "{kind}, {name}, {expected}: {error}");
            }
        }
    }
}

#[test]
fn a_name_that_somebody_else_takes_meanwhile_stays() {
    for (kind, names) in KINDS {
        for name in names {
            let folder = tempfile::tempdir().unwrap();
            let mut outlets = open(folder.path(), &[kind]).unwrap();
            write(&mut outlets, 10);
            fs::write(folder.path().join(name), "before").unwrap();
            let error = outlets.finish(true).unwrap_err().to_string();
            assert!(error.contains("exists, and did not at the begin; the data is in"), "{kind}: {error}");
            assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), "before");
            assert!(fs::metadata(folder.path().join(format!("{name}.part"))).unwrap().len() > 0);
            assert!(open(folder.path(), &[kind]).is_err(), "they exist");
        }
    }
}

#[test]
fn two_sinks_have_no_file_together() {
    let kinds = KINDS.map(|(kind, _)| kind);
    for first in kinds.into_iter().chain(["parquet:a.x"]) {
        for second in kinds {
            let folder = tempfile::tempdir().unwrap();
            let is_shared = first.contains("parquet") == second.contains("parquet");
            let opened = open(folder.path(), &[first, &second.replace(":a", ":./a")]);
            let error = opened.err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(error.contains("is being written by another sink"), is_shared, "{first} {second}: {error}");
        }
    }
}
