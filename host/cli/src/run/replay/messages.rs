//! Crates: their messages, each source over a connection of its own, by the times of their windows.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_wire::fadc::{Header, HEADER_BYTES};

use super::recording::{PAUSE, TICK};
use super::source::Source;
use super::tcp;

/// The messages of crates, from the files of a run.
pub struct Crates {
    pub name: String,
    pub files: Vec<PathBuf>,
    /// Hashes of the files of the run, by name.
    pub hashes: BTreeMap<String, String>,
    pub source: Arc<Source>,
    pub speed: f64,
}

/// When windows are due.
struct Clock {
    speed: f64,
    due: Instant,
    /// Begin of the newest window, in ns since 1970.
    newest: Option<i128>,
}

impl Clock {
    /// When the message of a window that begins then is due.
    fn due(&mut self, time: i128) -> Instant {
        let passed = self.newest.map_or(0, |newest| (time - newest).max(0));
        self.newest = self.newest.max(Some(time));
        let passed = Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX)).min(PAUSE);
        if self.speed.is_finite() {
            self.due += passed.div_f64(self.speed);
        }
        self.due
    }
}

/// A file, and the hash of what was read of it.
struct Hashed<F> {
    file: F,
    hasher: blake3::Hasher,
}

impl<F: Read> Read for Hashed<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(out)?;
        self.hasher.update(&out[..got]);
        Ok(got)
    }
}

/// The next message; `None`: the file has ended.
fn next(file: &mut impl Read, path: &Path, message: &mut Vec<u8>) -> anyhow::Result<Option<Header>> {
    let mut header = [0; HEADER_BYTES];
    match file.read_exact(&mut header[..1]) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let named = || path.display().to_string();
    file.read_exact(&mut header[1..]).with_context(named)?;
    let found = Header::parse(&header).with_context(named)?;
    message.clear();
    message.extend(header);
    message.resize(found.total_length as usize, 0);
    file.read_exact(&mut message[HEADER_BYTES..]).with_context(named)?;
    Ok(Some(found))
}

impl Crates {
    /// Sends all messages to the builder at `address`, as the crates did.
    ///
    /// # Errors
    /// Those of the files.
    pub fn send(self, address: SocketAddr, stop: &AtomicBool) -> anyhow::Result<()> {
        let mut clock = Clock { speed: self.speed, due: Instant::now(), newest: None };
        let mut streams: BTreeMap<u32, TcpStream> = BTreeMap::new();
        let mut message = Vec::new();
        for path in &self.files {
            let open = self.source.scope.open(path).map_err(anyhow::Error::msg)?;
            let mut file = Hashed { file: BufReader::new(open), hasher: blake3::Hasher::new() };
            while let Some(header) = next(&mut file, path, &mut message)? {
                let due = clock.due(header.time_ns());
                while let Some(left) =
                    due.checked_duration_since(Instant::now()).filter(|_| !stop.load(Ordering::Relaxed))
                {
                    std::thread::sleep(left.min(TICK));
                }
                if stop.load(Ordering::Relaxed) {
                    self.source.interrupted(&self.name);
                    return Ok(());
                }
                let stream = match streams.get_mut(&header.source_id) {
                    Some(stream) => stream,
                    None => {
                        let Some(stream) = tcp::connect(address, stop) else {
                            self.source.interrupted(&self.name);
                            return Ok(());
                        };
                        clock.due = clock.due.max(Instant::now());
                        streams.entry(header.source_id).or_insert(stream)
                    }
                };
                if !tcp::is_taken(stream.write_all(&message), &self.source, &self.name, address) {
                    return Ok(());
                }
            }
            let name = self.source.scope.named(path);
            if self.hashes.get(&name) != Some(&file.hasher.finalize().to_hex().to_string()) {
                self.source.doubt(&format!("{name}: its content is not what was written"));
            }
        }
        for mut stream in streams.into_values() {
            tcp::is_taken(tcp::end(&mut stream), &self.source, &self.name, address);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_due_by_their_times() {
        let begin = Instant::now();
        let mut clock = Clock { speed: 2.0, due: begin, newest: None };
        let mut due = |ns| (clock.due(ns) - begin).as_nanos();
        assert_eq!([due(5_000), due(5_000), due(7_000), due(6_000), due(8_000)], [0, 0, 1000, 1000, 1500]);
        assert_eq!(due(1 << 62), 30_000_001_500, "the clock was set");
        let mut clock = Clock { speed: f64::INFINITY, due: begin, newest: None };
        assert_eq!((clock.due(0), clock.due(1 << 62)), (begin, begin));
    }

    #[test]
    fn messages_are_read_to_the_end() {
        let header = Header::new(7, 1, 3, (1, 2), 8);
        let mut data = header.emit().to_vec();
        data.extend([1; 8]);
        data.extend(data.clone());
        let (mut file, mut message) = (&data[..], Vec::new());
        for _ in 0..2 {
            assert_eq!(next(&mut file, Path::new("a"), &mut message).unwrap(), Some(header));
            assert_eq!(message, data[..56]);
        }
        assert_eq!(next(&mut file, Path::new("a"), &mut message).unwrap(), None);
        let error = next(&mut &data[..60], Path::new("a"), &mut message)
            .and_then(|_| next(&mut &data[56..60], Path::new("a"), &mut message));
        assert!(error.is_err(), "a message that is cut");
    }
}
