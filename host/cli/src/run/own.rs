//! The files that the program has for itself: no sink may make one, or write through a link that leads to one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fadelink_runs::files::{number_of, EXPERIMENT, LOG, MANIFEST, UNFINISHED};
use fadelink_sinks::Places;

use super::experiment::File;
use super::{files, folder, places};

/// What a run writes beside its data.
const OF_A_RUN: [&str; 4] = [MANIFEST, LOG, EXPERIMENT, UNFINISHED];

/// What a path leads to.
struct Target {
    real: PathBuf,
    /// Device and number, if it is a file that is there: it may have other names.
    identity: Option<(u64, u64)>,
}

impl Target {
    fn of(path: &Path) -> Target {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file);
        Target { real: places::real(path), identity: found.map(|found| (found.dev(), found.ino())) }
    }

    fn is(&self, other: &Target) -> bool {
        self.real == other.real || (self.identity.is_some() && self.identity == other.identity)
    }
}

/// One of them, by its own name.
struct Own {
    named: PathBuf,
    target: Target,
}

/// All of them.
pub struct OwnFiles {
    files: Vec<Own>,
    /// The folder of the runs.
    runs: PathBuf,
    /// That of this run, once it is known.
    run: Option<PathBuf>,
}

impl OwnFiles {
    /// Those of an experiment, and of the run in this folder.
    pub fn of(file: &File, run: Option<&Path>) -> OwnFiles {
        let experiment = &file.experiment;
        let runs = &experiment.folder;
        let boards = experiment.fade.iter().filter_map(|board| board.get_ref().registers.as_ref());
        let mut all = BTreeSet::from([runs.join(folder::LOCK), runs.join(folder::SOCKET), file.path.clone()]);
        all.extend(boards.map(|path| file.path.with_file_name(path)));
        if let Some(settings) = &experiment.kafka_config_file {
            all.insert(settings.clone());
            #[cfg(feature = "kafka")]
            all.extend(crate::kafka_client::files(settings));
        }
        all.extend(run.iter().flat_map(|run| OF_A_RUN.map(|name| run.join(name))));
        let own = |path: &PathBuf| Own { named: places::named(path), target: Target::of(path) };
        OwnFiles { files: all.iter().map(own).collect(), runs: places::real(runs), run: run.map(places::real) }
    }

    /// Whether a sink can have all of its names.
    ///
    /// # Errors
    /// Which file of the program is in the way.
    pub fn check(&self, sink: &Places) -> Result<(), String> {
        let is_other = |path: &&Path| {
            path.parent() == Some(&self.runs) && number_of(path).is_some() && self.run.as_deref() != Some(path)
        };
        if let Some(other) = sink.first().ancestors().find(is_other) {
            return Err(format!("{} is the name of the folder of a run; expected another name", other.display()));
        }
        let there: Vec<_> = sink.known().iter().map(|path| Target::of(path)).collect();
        let is_of = |Own { named, target }: &&Own| {
            sink.have(named) || sink.have(&target.real) || there.iter().any(|other| other.is(target))
        };
        match self.files.iter().find(is_of) {
            Some(own) => Err(format!(
                "{}: it is a file that `fadelink run` reads itself; expected another name",
                own.named.display()
            )),
            None => Ok(()),
        }
    }
}

/// Refuses the names that a run has for its own files, whatever folder they are in: it may be that of a run.
///
/// # Errors
/// Which name.
pub fn check_names(sink: &Places) -> Result<(), String> {
    let first = sink.first().file_name().map_or("".into(), |name| name.to_string_lossy());
    let of_a_run = OF_A_RUN.into_iter().find(|name| sink.have(&sink.first().with_file_name(name)));
    match of_a_run.or(Some(&*first).filter(|first| files::is_own(first))) {
        Some(name) => Err(format!("`{name}` is the name of a file that the run writes itself; expected another name")),
        None => Ok(()),
    }
}
