//! Folders and files that programs of several users share: members of the group `fadelink`.
//!
//! Nobody outside the group may delay or mislead a program here: links are not followed, and only ordinary files are opened.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{accessat, Access, AtFlags, CWD};

/// Whose members share the files.
const GROUP: &str = "fadelink";
/// A link or another special file is not opened, or does not stop the program.
pub(crate) const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Makes a folder and those above it where they are missing. Root makes it for the group, if the group is there.
///
/// # Errors
/// The operating system's.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(above)?;
    }
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    let group = rustix::process::geteuid().is_root().then(|| std::fs::read_to_string("/etc/group").ok()).flatten();
    if let Some(id) = group.and_then(|groups| id_of(GROUP, &groups)) {
        std::os::unix::fs::chown(folder, None, Some(id))?;
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o2775))?;
    }
    Ok(())
}

/// The number of a group in the lines of `/etc/group`.
fn id_of(group: &str, groups: &str) -> Option<u32> {
    groups.lines().find_map(|line| line.strip_prefix(group)?.strip_prefix(':')?.split(':').nth(1)?.parse().ok())
}

/// True if this program may make files in a folder.
pub(crate) fn is_writable(folder: &Path) -> bool {
    accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// Opens a file to read and write it, and makes it if there is none: with these permissions, whatever the umask is. Also what the
/// file was found to be; one without a name was removed meanwhile.
///
/// # Errors
/// The operating system's; it is a link or another special file.
pub(crate) fn open(path: &Path, permissions: u32) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).mode(permissions).custom_flags(FLAGS).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.nlink() > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected an ordinary file"));
    }
    if found.mode() & 0o777 != permissions {
        // It cannot be done to a file of another user, who does it.
        let _ = file.set_permissions(PermissionsExt::from_mode(permissions));
    }
    Ok((file, found))
}

/// An error, with the path.
pub(crate) fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\nfadelink-old:x:7:\nfadelink:x:123:ann,bob\n";
        assert_eq!(id_of("fadelink", groups), Some(123));
        assert_eq!(id_of("fade", groups), None);
        assert_eq!(id_of("fadelink", "fadelink:x\nfadelink::many:\n"), None);
    }
}
