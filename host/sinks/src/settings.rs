//! Files of settings, which users write.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest file: much more than what anybody writes.
const LARGEST: u64 = 16 << 20;

/// The text of a file of settings.
///
/// # Errors
/// It cannot be read, is not text in UTF-8, or has no end, as a device.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it has more than {} MiB; expected a file of settings", LARGEST >> 20)));
    }
    String::from_utf8(text).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line}: expected text in UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_file_of_settings_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("e.toml");
        std::fs::write(&path, "a = 1\nb = 'é'\n").unwrap();
        assert_eq!(read(&path).unwrap(), "a = 1\nb = 'é'\n");
        std::fs::write(&path, b"a = 1\nb = '\xE9'\n").unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "line 2: expected text in UTF-8");
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "it has more than 16 MiB; expected a file of settings");
    }
}
