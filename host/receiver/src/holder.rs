//! Who has a board, in words.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// Longest text of a holder that is read. The kernel's names of programs have 15 bytes.
pub(crate) const BYTES: usize = 64;

/// Who has what another one wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// This program.
    This,
    /// Another one, or another thread of this one.
    Program {
        /// Its process, as that is numbered where it runs.
        pid: u32,
        /// Its name, printable.
        name: String,
    },
    /// It has not told.
    Unknown,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Holder::This => f.write_str("this program"),
            Holder::Program { pid, name } => write!(f, "{name} (pid {pid})"),
            Holder::Unknown => f.write_str("another program on this computer"),
        }
    }
}

impl Holder {
    /// What a holder has written: process, space, name, line feed. Anything else is of no known one.
    pub(crate) fn parse(text: &[u8]) -> Holder {
        let text = &text[..text.len().min(BYTES)];
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        match line.split_once(' ').map(|(pid, name)| (pid.parse(), name.escape_debug().to_string())) {
            Some((Ok(pid), name)) if !name.is_empty() => Holder::Program { pid, name },
            _ => Holder::Unknown,
        }
    }

    /// The text of this program.
    pub(crate) fn own() -> Vec<u8> {
        static NAME: OnceLock<Vec<u8>> = OnceLock::new();
        let name = NAME.get_or_init(|| {
            let told = std::fs::read("/proc/self/comm").unwrap_or_default();
            let told = told.strip_suffix(b"\n").unwrap_or(&told);
            let file = std::env::args_os().next();
            let file = file.as_ref().and_then(|file| Path::new(file).file_name()).unwrap_or_default();
            let name = if told.is_empty() { file.as_bytes() } else { told };
            // A line has one.
            name.iter().take(BYTES / 2).map(|byte| if *byte == b'\n' { b'?' } else { *byte }).collect()
        });
        let mut text = format!("{} ", std::process::id()).into_bytes();
        text.extend_from_slice(name);
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_holder_writes_is_read() {
        let Holder::Program { pid, name } = Holder::parse(&Holder::own()) else { panic!("no holder") };
        assert_eq!(pid, std::process::id());
        assert!(!name.is_empty() && Holder::own().len() <= BYTES);
        assert_eq!(Holder::parse(b"12 fadelink\nold text").to_string(), "fadelink (pid 12)");
    }

    #[test]
    fn what_does_not_print_is_escaped_and_what_is_long_is_cut() {
        assert_eq!(Holder::parse(b"7 a\x1b[31m\xff\r\n").to_string(), "a\\u{1b}[31m\u{fffd}\\r (pid 7)");
        assert_eq!(Holder::parse("7 a\u{202e}b".as_bytes()).to_string(), "a\\u{202e}b (pid 7)");
        assert!(Holder::parse(&[b"1 ".as_slice(), &[b'x'; 1000]].concat()).to_string().len() < 80);
        for nobody in [b"".as_slice(), b"\n", b"12\n", b"12 \n", b"-1 x\n", b"4294967296 x", b"x 12", &[0; 64]] {
            assert_eq!(Holder::parse(nobody), Holder::Unknown, "{nobody:?}");
        }
    }
}
