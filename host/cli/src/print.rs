//! What the command prints. Each print may fail: standard output may be a full disk or a pipe whose reader has gone, standard error a
//! terminal that was closed. No work ends for that. Results that could not be printed are an error of the program at its end, when all
//! data is safe ([`end`]); what is only told is left out.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::{error, fmt};

use crate::progress::{self, LINES};
use crate::standard_error;

/// Prints a line of the result on standard output.
macro_rules! out {
    ($($text:tt)*) => { $crate::print::line(format_args!($($text)*)) };
}

/// Tells a line on standard error, above those of a progress display.
macro_rules! tell {
    ($($text:tt)*) => { $crate::print::above_progress(format!("{}\n", format_args!($($text)*)).as_bytes()) };
}

/// Why the result is not printed whole. Nothing more of it is printed then.
static FAILED: OnceLock<io::Error> = OnceLock::new();
/// Of lines that are printed together.
const TOGETHER: usize = 64 << 10;

/// The result cannot be printed; [`end`] knows why.
#[derive(Debug)]
pub struct Unprinted;

impl fmt::Display for Unprinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the result could not be printed")
    }
}

impl error::Error for Unprinted {}

/// Notes how a part of the result was printed.
pub fn note(printed: io::Result<()>) {
    if let Err(error) = printed {
        let _ = FAILED.set(error);
    }
}

/// Whether the result can be printed so far, for work that is done for nothing else.
///
/// # Errors
/// It cannot.
pub fn check() -> Result<(), Unprinted> {
    FAILED.get().map_or(Ok(()), |_| Err(Unprinted))
}

fn text(text: &str) {
    if check().is_ok() {
        note(io::stdout().write_all(text.as_bytes()));
    }
}

/// Prints a line of the result. Use `out!`.
pub fn line(line: fmt::Arguments<'_>) {
    text(&format!("{line}\n"));
}

/// Lines of a long result, of which many are printed together; the last ones when this is dropped.
#[derive(Default)]
pub struct Lines(String);

impl Lines {
    /// Adds a line.
    ///
    /// # Errors
    /// Those of [`check`].
    pub fn add(&mut self, line: fmt::Arguments<'_>) -> Result<(), Unprinted> {
        self.0 += &format!("{line}\n");
        if self.0.len() >= TOGETHER {
            self.print();
        }
        check()
    }

    fn print(&mut self) {
        text(&std::mem::take(&mut self.0));
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.print();
    }
}

/// Writes whole lines to standard error, above those of a progress display.
pub fn above_progress(lines: &[u8]) {
    if progress::is_shown() && standard_error::is_ready() && !standard_error::has_waiting() {
        // What cannot be told cannot be told anywhere else.
        let _ = LINES.println(String::from_utf8_lossy(lines).trim_end_matches('\n'));
    } else {
        standard_error::tell(lines);
    }
}

/// All was printed: whether somebody has missed a part of it.
///
/// # Errors
/// The operating system's. A reader that has gone is none, for it has seen what it wanted.
pub fn end() -> Result<(), &'static io::Error> {
    note(io::stdout().flush());
    FAILED.get().filter(|error| error.kind() != ErrorKind::BrokenPipe).map_or(Ok(()), Err)
}
