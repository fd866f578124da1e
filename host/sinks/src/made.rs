//! What is known of a file that a sink has made, so that what others do to it is found.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use blake3::Hash;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// What tells a file from all others, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    /// A file system gives the inode of a file that was removed to the next one.
    born: Option<SystemTime>,
}

impl Identity {
    pub(crate) fn of(found: &Metadata) -> Identity {
        Identity { device: found.dev(), inode: found.ino(), born: found.created().ok() }
    }
}

/// What is known of the content of a file that is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The words of a board, of which there are hashes elsewhere.
    Words,
    /// BLAKE3 of what was written.
    Hash(Hash),
    /// Nothing: a part of it could not be written.
    Unknown,
}

/// A file that is finished, as it was left.
#[derive(Debug, Clone, Copy)]
struct Left {
    bytes: u64,
    modified: Option<SystemTime>,
    content: Content,
}

/// A file that a sink has made, as it has to be found.
#[derive(Debug, Clone)]
pub struct Made {
    path: PathBuf,
    identity: Identity,
    /// Of one that is finished.
    left: Option<Left>,
    /// Of one whose name is claimed as long as it is known.
    held: Option<Arc<File>>,
}

/// As `{"path", "bytes", "blake3"}`: the second is `null` of one that is not finished, the third is there if it is known.
impl Serialize for Made {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("path", &self.path.to_string_lossy())?;
        map.serialize_entry("bytes", &self.left.map(|left| left.bytes))?;
        if let Some(Content::Hash(hash)) = self.left.map(|left| left.content) {
            map.serialize_entry("blake3", hash.to_hex().as_str())?;
        }
        map.end()
    }
}

impl Made {
    /// One that is still written.
    pub(crate) fn open_at(path: &Path, found: &Metadata) -> Made {
        Made { path: path.to_owned(), identity: Identity::of(found), left: None, held: None }
    }

    /// One that is finished, by what is known of it.
    pub(crate) fn finished(path: &Path, found: &Metadata, content: Content) -> Made {
        let left = Left { bytes: found.len(), modified: found.modified().ok(), content };
        Made { path: path.to_owned(), identity: Identity::of(found), left: Some(left), held: None }
    }

    /// Keeps the claim of its name until the last copy of this is dropped: no other sink takes it for one of an earlier run. `file` has
    /// the claim.
    pub(crate) fn hold(&mut self, file: &File) -> io::Result<()> {
        self.held = Some(Arc::new(file.try_clone()?));
        Ok(())
    }

    /// Holds what `other` has.
    pub(crate) fn holding(self, other: &Made) -> Made {
        Made { held: other.held.clone(), ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True of the one that has this path now.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    /// True of one that is still written.
    pub(crate) fn is_open(&self) -> bool {
        self.left.is_none()
    }

    /// The content of one that is finished was found out.
    pub(crate) fn know(&mut self, content: Hash) {
        if let Some(left) = &mut self.left {
            left.content = Content::Hash(content);
        }
    }

    fn changed(&self, what: &str) -> io::Error {
        io::Error::other(format!("the file {} {what}", self.path.display()))
    }

    /// What is there of it now.
    pub(crate) fn found(&self) -> io::Result<Metadata> {
        let found = match fs::metadata(&self.path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(self.changed("was removed or renamed, or a folder of its path was"));
            }
            found => found?,
        };
        self.is(&found)?;
        Ok(found)
    }

    fn is(&self, found: &Metadata) -> io::Result<()> {
        if Identity::of(found) != self.identity {
            return Err(self.changed("was replaced by another one"));
        }
        Ok(())
    }

    /// Whether it is there as it was left.
    pub(crate) fn check(&self) -> io::Result<()> {
        let found = self.found()?;
        let Some(left) = self.left else { return Ok(()) };
        self.has(&found, left.bytes)?;
        if found.modified().ok() != left.modified {
            return Err(self.changed("was written by another program after it was finished"));
        }
        Ok(())
    }

    /// Whether what was found has so many bytes.
    pub(crate) fn has(&self, found: &Metadata, bytes: u64) -> io::Result<()> {
        if found.len() != bytes {
            let what = format!("has {} bytes instead of {bytes}: another program has changed it", found.len());
            return Err(self.changed(&what));
        }
        Ok(())
    }

    /// Removes it where it was made, or what a link there leads to, if it is the same one and has nothing.
    pub(crate) fn remove_empty(&self) {
        // One that cannot be removed is as one of a program that was killed.
        let _ = fs::canonicalize(&self.path).and_then(|path| match fs::symlink_metadata(&path)? {
            found if Identity::of(&found) == self.identity && found.len() == 0 => fs::remove_file(&path),
            _ => Ok(()),
        });
    }

    /// Opens it to be read.
    ///
    /// # Errors
    /// The operating system's; another one has its name.
    #[cfg(feature = "hdf5")]
    pub(crate) fn open(&self) -> io::Result<fs::File> {
        let file = fs::File::open(&self.path)?;
        self.is(&file.metadata()?)?;
        Ok(file)
    }
}
