//! The names of what is in the folder of a run.

use std::fs::File;
use std::io;
use std::path::Path;

/// Name of a run's manifest in its folder.
pub const MANIFEST: &str = "manifest.json";
/// Name of a run's log in its folder.
pub const LOG: &str = "log.jsonl";
/// Name of the experiment's copy in the folder of a run.
pub const EXPERIMENT: &str = "experiment.toml";
/// End of the name of the file with the hashes of a board.
pub const HASHES: &str = ".hashes";
/// End of the name of the file with the transmissions of a board.
pub const TRANSMISSIONS: &str = ".transmissions";
/// Name of a file that is in the folder of a run until its manifest says how it has ended.
pub const UNFINISHED: &str = "unfinished";
/// End of the name of a file that is not finished.
pub const PART: &str = ".part";

const PREFIX: &str = "run_";
/// The largest number of a run. A folder with a larger one is not one of a run, and blocks none.
pub const LAST: u64 = 999_999_999_999;

/// The name of the folder of a run.
pub fn name_of(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

/// The number of the run whose folder this is.
pub fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (number <= LAST && name == name_of(number)).then_some(number)
}

/// True of a name of what is noted for a program that goes on, until the manifest has it.
pub fn is_note(name: &str) -> bool {
    // A program that was killed may have left the list or the mark half-written.
    let is_replaced = |name: &&str| *name == UNFINISHED || name.ends_with(TRANSMISSIONS);
    let name = name.strip_suffix(PART).filter(is_replaced).unwrap_or(name);
    name == UNFINISHED || name.ends_with(HASHES) || name.ends_with(TRANSMISSIONS)
}

/// True of what each run has beside its data.
pub fn is_of_the_run(name: &str) -> bool {
    [MANIFEST, LOG, EXPERIMENT].contains(&name)
}

/// BLAKE3 of a file's content, as hexadecimal digits.
///
/// # Errors
/// The operating system's.
pub fn hash(file: File) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().to_hex().to_string())
}
