//! The words of a board, from the files of a run, when they are due.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_feb::{Status, User};
use fadelink_runs::{Comparison, Expected};
use jiff::Timestamp;
use serde_json::Value;

use super::source::Source;

/// Longest sleep of a stream that waits for its time.
pub const TICK: Duration = Duration::from_millis(5);

/// Longest pause between two moments of a recording: a step of a clock is not waited for.
pub const PAUSE: Duration = Duration::from_secs(60);

/// Bytes that are read at a time of what is not played.
const PIECE: usize = 1 << 20;

/// How many bytes had come at what time since the begin, in seconds.
#[derive(Clone)]
pub struct Timeline(Vec<(f64, u64)>);

impl Timeline {
    /// Of a board in a manifest.
    fn of(manifest: &Value, board: &Value) -> Option<Timeline> {
        let begin: Timestamp = manifest["begin"]["utc"].as_str()?.parse().ok()?;
        let (mut before, mut seconds) = (begin.as_nanosecond(), 0.0);
        let mut times = vec![(seconds, 0)];
        for entry in board["timeline"].as_array()? {
            let (time, bytes) = (i128::from(entry[0].as_i64()?), entry[1].as_u64()?);
            seconds += ((time - before) as f64 / 1e9).clamp(0.0, PAUSE.as_secs_f64());
            times.push((seconds, bytes));
            before = time;
        }
        Some(Timeline(times))
    }

    /// Bytes that had come after so many seconds: between two entries they came evenly.
    fn bytes(&self, seconds: f64) -> u64 {
        let next = self.0.partition_point(|(time, _)| *time <= seconds);
        match (self.0.get(next.wrapping_sub(1)), self.0.get(next)) {
            (Some((_, bytes)), None) => *bytes,
            (Some((begin, from)), Some((end, to))) => {
                let share = (seconds - begin) / (end - begin);
                from + ((to - from) as f64 * share) as u64
            }
            (None, _) => 0,
        }
    }
}

/// The words of a stream, from the files of the run.
pub struct Recording {
    pub name: String,
    files: Vec<PathBuf>,
    /// Bytes of its words.
    bytes: u64,
    timeline: Timeline,
    /// With the hashes of the manifest, whose words may be followed by filler that is not played.
    comparison: Comparison,
    expected: Expected,
    pub source: Arc<Source>,
    speed: f64,
    begun: Instant,
    /// The file that is read, and the number of the next.
    file: Option<File>,
    next: usize,
    at: u64,
    failed: bool,
}

impl Recording {
    /// Of a board in the manifest of the folder `run`.
    ///
    /// # Errors
    /// The run has no file of its words.
    pub fn of(source: &Arc<Source>, speed: f64, manifest: &Value, board: &Value) -> anyhow::Result<Recording> {
        let name = board["name"].as_str().unwrap_or_default().to_owned();
        let files = fadelink_runs::word_files(&source.scope.folder, board);
        let files = files.with_context(|| format!("board `{name}`: the run has no plain file of its words"))?;
        let filler = board["filler_words"].as_u64().unwrap_or(0) * 8;
        let bytes = board["bytes"].as_u64().unwrap_or(0).saturating_sub(filler);
        let timeline = Timeline::of(manifest, board).with_context(|| format!("board `{name}`: it has no timeline"))?;
        let expected = Expected::of(board).with_context(|| format!("board `{name}`: it has no hashes"))?;
        Ok(Recording::new(name, files, (bytes, expected), (timeline, speed), source.clone()))
    }

    fn new(
        name: String,
        files: Vec<PathBuf>,
        (bytes, expected): (u64, Expected),
        (timeline, speed): (Timeline, f64),
        source: Arc<Source>,
    ) -> Recording {
        let (comparison, begun) = (Comparison::new(expected.clone()), Instant::now());
        Recording {
            name,
            files,
            bytes,
            timeline,
            comparison,
            expected,
            source,
            speed,
            begun,
            file: None,
            next: 0,
            at: 0,
            failed: false,
        }
    }

    /// Begins anew, from now on.
    pub fn restart(&mut self) {
        (self.begun, self.file, self.next, self.at) = (Instant::now(), None, 0, 0);
        self.comparison = Comparison::new(self.expected.clone());
    }

    /// True when all of it was read, or it cannot be read.
    pub fn has_ended(&self) -> bool {
        self.at >= self.bytes || self.failed
    }

    /// Bytes that it is time for, a multiple of 8.
    fn due(&self) -> u64 {
        let there = match self.speed {
            f64::INFINITY => self.bytes,
            speed => self.timeline.bytes(self.begun.elapsed().as_secs_f64() * speed).min(self.bytes),
        };
        there.saturating_sub(self.at) / 8 * 8
    }

    /// Reads the next words that it is time for; their bytes. What is not as it was received is told.
    ///
    /// # Errors
    /// The operating system's, or the files end before.
    pub fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wanted = self.due().min(out.len() as u64) as usize;
        let got = self.next_words(&mut out[..wanted])?;
        if got < wanted {
            let what = "the files have fewer words than the manifest";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, what));
        }
        self.at += got as u64;
        if got > 0 && self.at >= self.bytes {
            self.compare_rest()?;
        }
        Ok(got)
    }

    /// The next words in the files, and how many bytes of them there are.
    fn next_words(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut got = 0;
        while got < out.len() {
            let Some(file) = &mut self.file else {
                let Some(path) = self.files.get(self.next) else { break };
                self.file = Some(self.source.scope.open(path).map_err(io::Error::other)?);
                self.next += 1;
                continue;
            };
            match file.read(&mut out[got..])? {
                0 => self.file = None,
                bytes => got += bytes,
            }
        }
        self.comparison.update(&out[..got]);
        self.comparison.wrong(|_, _| self.name.clone()).iter().for_each(|what| self.source.doubt(what));
        Ok(got)
    }

    /// Nothing more is played: what was is compared, which takes the whole of its last block.
    pub fn end(&mut self) {
        let mut piece = vec![0; PIECE];
        while !self.has_ended() && self.comparison.left_of_block() > 0 {
            let left = self.comparison.left_of_block().min(PIECE as u64) as usize;
            let result = match self.next_words(&mut piece[..left]) {
                Ok(0) => self.compare_rest(),
                read => read.map(drop),
            };
            if let Err(error) = result {
                self.fail(&error);
            }
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.source.doubt(&format!("{}: {error}", self.name));
        self.failed = true;
    }

    /// All was played: compares the last block, to whose end there may be filler.
    fn compare_rest(&mut self) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while self.next_words(&mut piece)? > 0 {}
        let compared = std::mem::replace(&mut self.comparison, Comparison::new(self.expected.clone()));
        compared.finish(|_, _| self.name.clone()).iter().for_each(|what| self.source.doubt(what));
        Ok(())
    }
}

impl User for Recording {
    fn begin(&mut self) {
        self.restart();
    }

    fn fill(&mut self, out: &mut [u8]) -> usize {
        if self.failed {
            return 0;
        }
        self.read(out).unwrap_or_else(|error| {
            self.fail(&error);
            0
        })
    }

    fn command(&mut self, _code: u16, _argument: u32, _status: &Status) -> u64 {
        // It has no registers.
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bytes_come_evenly_between_the_entries() {
        let timeline = Timeline(vec![(0.0, 0), (1.0, 800), (3.0, 800), (4.0, 1000)]);
        for (seconds, bytes) in
            [(-1.0, 0), (0.0, 0), (0.5, 400), (1.0, 800), (2.0, 800), (3.5, 900), (4.0, 1000), (99.0, 1000)]
        {
            assert_eq!(timeline.bytes(seconds), bytes, "{seconds} s");
        }
    }

    #[test]
    fn a_step_of_the_clock_is_no_pause() {
        let (second, year) = (1_000_000_000_i64, 365 * 86_400 * 1_000_000_000_i64);
        let manifest = json!({ "begin": { "utc": "1970-01-01T00:00:01Z" } });
        let times = [(2 * second, 8), (year, 16), (year + second, 24), (3 * second, 32), (4 * second, 40)];
        let board = json!({ "timeline": times });
        let expected = [(0.0, 0), (1.0, 8), (61.0, 16), (62.0, 24), (62.0, 32), (63.0, 40)];
        let timeline = Timeline::of(&manifest, &board).unwrap();
        assert_eq!(timeline.0, expected);
        assert_eq!([61.5, 62.0, 62.5].map(|seconds| timeline.bytes(seconds)), [20, 32, 36]);
    }

    #[test]
    fn a_recording_is_read_across_its_files_at_its_speed() {
        let folder = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..3).map(|i| folder.path().join(format!("{i}"))).collect();
        for (i, file) in files.iter().enumerate() {
            std::fs::write(file, vec![i as u8; 1000]).unwrap();
        }
        let all = [[0; 1000], [1; 1000], [2; 1000]].concat();
        let board = json!({ "hashes": { "bytes": 3000, "blake3": [blake3::hash(&all).to_hex().to_string()] } });
        let source = Arc::new(Source::new(folder.path(), false).unwrap());
        let timeline = Timeline(vec![(0.0, 0), (1000.0, 3000)]);
        let expected = Expected::of(&board).unwrap();
        let words = (3000, expected);
        let mut recording = Recording::new("a".into(), files.clone(), words, (timeline, f64::INFINITY), source.clone());
        let mut out = [9; 4096];
        assert_eq!(recording.read(&mut out).unwrap(), 3000);
        assert!((0..3).all(|i| out[1000 * i..1000 * (i + 1)].iter().all(|byte| *byte == i as u8)));
        assert!(recording.has_ended() && recording.read(&mut out).unwrap() == 0 && source.is_good());
        recording.restart();
        assert!(!recording.has_ended());
        recording.speed = 1.0;
        recording.begun = Instant::now().checked_sub(Duration::from_secs(100)).unwrap();
        let bytes = recording.read(&mut out).unwrap();
        assert!((296..400).contains(&bytes) && bytes.is_multiple_of(8), "{bytes}");
        recording.bytes = 5000;
        recording.speed = f64::INFINITY;
        assert!(recording.read(&mut out).is_err(), "the files end before");
        for (bytes, change) in [(3000, 1), (2992, 0), (3000, 0)] {
            // What is not played, because it is filler, is compared, too.
            let source = Arc::new(Source::new(folder.path(), false).unwrap());
            (recording.bytes, recording.source) = (bytes, source.clone());
            std::fs::write(&files[2], [&[2; 999][..], &[2 + change]].concat()).unwrap();
            recording.restart();
            while !recording.has_ended() {
                recording.read(&mut out).unwrap();
            }
            assert_eq!(source.is_good(), change == 0, "{bytes} bytes");
        }
    }
}
