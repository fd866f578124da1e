//! Files on the disk whose name and content survive a power cut.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// End of the names of files that are not whole.
pub const UNFINISHED: &str = ".part";

/// Waits until the content of `file` is on the disk. Pipes and devices have nothing to wait for.
///
/// # Errors
/// The operating system's.
pub fn sync(file: &File) -> io::Result<()> {
    match file.sync_data() {
        // fsync(2): EINVAL or EROFS of what cannot be synchronized. Of a file they say that its file system has failed.
        Err(error) if is_no_sync(&error) && !file.metadata()?.is_file() => Ok(()),
        other => other,
    }
}

fn is_no_sync(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::ReadOnlyFilesystem)
}

/// Waits until the name of `path` is on the disk, as its folder has it.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match File::open(parent)?.sync_all() {
        // Some file systems keep folders by themselves.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// The name that a file has until it is whole.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    name.into()
}

/// Replaces a file: a reader sees the old content or the new one, also after a crash. Returns what was written.
///
/// # Errors
/// The operating system's.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<Metadata> {
    let unfinished = unfinished(path);
    // What is left of a program that was killed is removed, and so is a link, which would lead elsewhere.
    let mut file = match File::create_new(&unfinished) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(&unfinished)?;
            File::create_new(&unfinished)?
        }
        new => new?,
    };
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    sync_parent(path)?;
    file.metadata()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_killed_program_is_replaced_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a.json"), folder.path().join("other"));
        std::fs::write(&other, "mine").unwrap();
        std::fs::write(unfinished(&path), "half of").unwrap();
        replace(&path, b"one").unwrap();
        std::os::unix::fs::symlink(&other, unfinished(&path)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap()), (b"two".into(), b"mine".into()));
        assert!(!unfinished(&path).exists());
    }
}
