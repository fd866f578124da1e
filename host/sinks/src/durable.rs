//! Files on the disk whose name and content survive a power cut.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{renameat_with, RenameFlags, CWD};
use rustix::io::Errno;

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

/// What is left of a program that was killed is removed, and so is a link, which would lead elsewhere.
fn create_anew(unfinished: &Path) -> io::Result<File> {
    match File::create_new(unfinished) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(unfinished)?;
            File::create_new(unfinished)
        }
        new => new,
    }
}

/// Writes a file whose name is given to it by `rename` when it is whole. Returns what was written.
fn write(path: &Path, content: &[u8], rename: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<Metadata> {
    let unfinished = unfinished(path);
    let mut file = create_anew(&unfinished)?;
    let written = file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| rename(&unfinished));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written?;
    sync_parent(path)?;
    file.metadata()
}

/// Replaces a file: a reader sees the old content or the new one, also after a crash. Returns what was written.
///
/// # Errors
/// The operating system's.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<Metadata> {
    write(path, content, |unfinished| std::fs::rename(unfinished, path))
}

/// Makes a file that is whole as soon as it is there. Returns what was written.
///
/// # Errors
/// The operating system's; something has its name.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<Metadata> {
    write(path, content, |unfinished| rename_new(unfinished, path))
}

/// Renames a file to a name that nothing has.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system without that.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => link_new(from, to),
        renamed => Ok(renamed?),
    }
}

fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

/// True of an ordinary file that has no other name: what is written to it is in no other place.
pub fn is_alone(found: &Metadata) -> bool {
    found.is_file() && found.nlink() == 1
}

/// Gives a file that has other names, as in a copy by hard links, a content of its own: it is to be written or cut, and they are not.
///
/// # Errors
/// The operating system's.
pub fn separate(path: &Path) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.is_file() || is_alone(&found) {
        return Ok(());
    }
    let unfinished = unfinished(path);
    let (mut file, mut copy) = (File::open(path)?, create_anew(&unfinished)?);
    let copied = io::copy(&mut file, &mut copy).and_then(|_| copy.set_permissions(found.permissions()));
    let replaced = copied.and_then(|()| copy.sync_all()).and_then(|()| std::fs::rename(&unfinished, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    replaced?;
    sync_parent(path)
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

    #[test]
    fn a_file_with_other_names_is_separated_from_them() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("other"));
        separate(&path).unwrap();
        std::fs::write(&path, "all of it").unwrap();
        separate(&path).unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        separate(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(3).unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap()),
            (b"all".into(), b"all of it".into())
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_rename_replaces_nothing_with_and_without_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let there = || std::fs::read_dir(folder.path()).unwrap().count();
        for rename in [rename_new, link_new] {
            std::fs::write(name("a"), "a").unwrap();
            std::fs::write(name("b"), "b").unwrap();
            assert!(rename(&name("a"), &name("b")).is_err());
            let read = |file| std::fs::read(name(file)).unwrap();
            assert_eq!((read("a"), read("b")), (b"a".to_vec(), b"b".to_vec()));
            rename(&name("a"), &name("c")).unwrap();
            assert_eq!((read("c"), there()), (b"a".to_vec(), 2));
            std::fs::remove_file(name("c")).unwrap();
        }
        assert!(create(&name("b"), b"other").is_err());
        assert_eq!((std::fs::read(name("b")).unwrap(), there()), (b"b".to_vec(), 1), "nothing of it is left");
        create(&name("d"), b"d").unwrap();
        assert_eq!(std::fs::read(name("d")).unwrap(), b"d");
    }
}
