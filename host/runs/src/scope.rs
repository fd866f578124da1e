//! What of a run may be read.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The files in the folder of a run, and with `outside` all that its manifest names.
pub struct Scope {
    /// The folder, without links in its path.
    pub folder: PathBuf,
    outside: bool,
}

/// True of the name of a file in the folder itself.
pub fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

impl Scope {
    /// Of the run in this folder.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(run: &Path, outside: bool) -> std::io::Result<Scope> {
        Ok(Scope { folder: run.canonicalize()?, outside })
    }

    /// A path of the manifest as it is told: without the folder of the run.
    pub fn named(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).display().to_string()
    }

    /// Opens a file that the manifest names; else says why it is not read.
    ///
    /// # Errors
    /// In words.
    pub fn open(&self, path: &Path) -> Result<File, String> {
        let named = self.named(path);
        let in_words = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => format!("{named}: it is missing"),
            _ => format!("{named}: it cannot be read: {error}"),
        };
        let is_out = path
            .strip_prefix(&self.folder)
            .is_ok_and(|path| path.components().any(|part| part == Component::ParentDir));
        if is_out && !self.outside {
            return Err(format!("{named}: it is outside the folder of the run, and was not read (--outside reads it)"));
        }
        let is_link = fs::symlink_metadata(path).map_err(in_words)?.is_symlink();
        if is_link && !self.outside {
            return Err(format!("{named}: it is a link, and was not followed (--outside follows it)"));
        }
        // Folders in its path may be links.
        let real = path.canonicalize().map_err(in_words)?;
        if !self.outside && !real.starts_with(&self.folder) {
            return Err(format!("{named}: it is outside the folder of the run, and was not read (--outside reads it)"));
        }
        // A pipe would be waited for.
        if !real.is_file() {
            return Err(format!("{named}: expected a file"));
        }
        File::open(&real).map_err(in_words)
    }
}
