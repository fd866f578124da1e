//! Command sequence numbers (docs/protocol/fade10g.md, "Exactly once").
//!
//! A FEB takes a command with the number of the last one for its repetition. All programs of this computer that send
//! commands to a FEB therefore draw from one counter, which is kept in a file that outlives them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use fadelink_wire::serial::after16;
use fadelink_wire::MacAddr;
use rustix::fs::{flock, FlockOperation};

use crate::{commons, interface};

/// The folder of the counters. Members of its group share them; for others each program counts alone.
pub const FOLDER: &str = "/var/lib/fadelink/csn";
/// A counter: its digits and a line feed.
const BYTES: usize = 6;
/// How often a file that another program holds is tried again, and how long after: a second in all. A number is drawn in
/// microseconds, but a program that draws may have to wait for a processor meanwhile. Who does not wait for it uses a
/// number that the counter does not know, and the next program may draw it again.
const LOCK_ATTEMPTS: u32 = 5000;
const LOCK_INTERVAL: Duration = Duration::from_micros(200);

/// The numbers of one FEB: those that a program has used are never drawn again before they wrap.
#[derive(Debug)]
pub struct Numbers {
    /// Shared with other programs.
    file: Option<File>,
    /// The latest that was drawn or seen here.
    latest: Option<u16>,
    /// What a counter said that cannot be written: the first number is another one. It is not the next one either: other
    /// programs that cannot write the counter would begin with the same.
    used: Option<u16>,
}

/// The later of two; `None` is before all.
fn later(a: Option<u16>, b: Option<u16>) -> Option<u16> {
    match (a, b) {
        (Some(a), Some(b)) if after16(b, a) => Some(b),
        (None, b) => b,
        (a, _) => a,
    }
}

impl Numbers {
    /// Of this program alone. `latest` counts as used; with `None` the first one is drawn at random.
    pub fn private(latest: Option<u16>) -> Numbers {
        Numbers { file: None, latest, used: None }
    }

    /// Of `feb` behind the interface with this index (0: none), shared where the folder can be written. Where it can only be
    /// read, the first number is not the one that was used last.
    pub fn of(interface: u32, feb: MacAddr) -> Numbers {
        if interface == 0 {
            return Numbers::private(None);
        }
        let name = interface::name_of(interface).map(|name| format!("{name}-{feb}"));
        let known = name.map(|name| Numbers::shared_or_read(Path::new(FOLDER), &name, feb));
        known.unwrap_or_else(|error| {
            tracing::debug!("{FOLDER}: {error}; this program counts the commands of FEB {feb} alone");
            Numbers::private(None)
        })
    }

    fn shared_or_read(folder: &Path, name: &str, feb: MacAddr) -> Numbers {
        Numbers::shared(folder, name).unwrap_or_else(|error| {
            let used = read(folder, name);
            let known = used.map_or(String::new(), |used| format!(", beginning with another number than {used}"));
            tracing::debug!("{FOLDER}: {error}; this program counts the commands of FEB {feb} alone{known}");
            Numbers { used, ..Numbers::private(None) }
        })
    }

    /// Shared with all that open the file `name` of `folder`; what is missing is created.
    ///
    /// # Errors
    /// They cannot be created or written; the file is a link or another special file.
    pub fn shared(folder: &Path, name: &str) -> io::Result<Numbers> {
        Ok(Numbers { file: Some(open(folder, name)?), ..Numbers::private(None) })
    }

    /// Draws a number. Never 0: the published core takes that, after RESET, for a repetition.
    pub fn draw(&mut self) -> u16 {
        let (latest, used) = (self.latest, self.used);
        let after = |number: u16| number.wrapping_add(1).max(1);
        let first = || loop {
            let number = after(fastrand::u16(..));
            if Some(number) != used {
                return number;
            }
        };
        let next = |stored| later(latest, stored).map_or_else(first, after);
        let number = self.exchange(next).unwrap_or_else(|| next(None));
        self.latest = Some(number);
        number
    }

    /// The FEB has executed a command with this number, of this program or another.
    pub fn saw(&mut self, number: u16) {
        let latest = later(self.latest, Some(number));
        if latest != self.latest {
            self.latest = latest;
            self.exchange(|stored| later(stored, Some(number)).unwrap_or(number));
        }
    }

    /// Replaces the stored number, which other programs wait for meanwhile. `None`: it cannot be, and is not shared from
    /// now on.
    fn exchange(&mut self, next: impl Fn(Option<u16>) -> u16) -> Option<u16> {
        let file = self.file.as_ref()?;
        let replaced = replace(file, next);
        if let Err(error) = &replaced {
            tracing::warn!("{FOLDER}: {error}; this program counts alone from now on");
            self.file = None;
        }
        replaced.ok()
    }
}

/// The number in a counter that cannot be written; nothing if there is none.
fn read(folder: &Path, name: &str) -> Option<u16> {
    let file = OpenOptions::new().read(true).custom_flags(commons::FLAGS).open(folder.join(name)).ok()?;
    file.metadata().ok()?.is_file().then(|| stored(&file).ok()).flatten().flatten()
}

/// The number in a counter; nothing if it has none.
fn stored(file: &File) -> io::Result<Option<u16>> {
    let mut text = [0; BYTES];
    let length = file.read_at(&mut text, 0)?;
    Ok(std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim_end().parse().ok()))
}

fn open(folder: &Path, name: &str) -> io::Result<File> {
    commons::make(folder)?;
    commons::open(&folder.join(name), 0o664)
        .map(|(file, _)| file)
        .map_err(|error| commons::named(error, Path::new(name)))
}

fn replace(file: &File, next: impl Fn(Option<u16>) -> u16) -> io::Result<u16> {
    let mut attempts = 1;
    while let Err(error) = flock(file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK || attempts == LOCK_ATTEMPTS {
            return Err(error.into());
        }
        attempts += 1;
        std::thread::sleep(LOCK_INTERVAL);
    }
    let number = next(stored(file)?);
    file.write_all_at(format!("{number:05}\n").as_bytes(), 0)?;
    flock(file, FlockOperation::Unlock)?;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn shared(folder: &Path) -> Numbers {
        Numbers::shared(folder, "eth0-02:fa:de:00:00:01").unwrap()
    }

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("fadelink-numbers-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn the_next_one_is_never_the_last_one_of_the_feb() {
        for last in 0..=u16::MAX {
            let mut numbers = Numbers::private(None);
            numbers.saw(last);
            assert_eq!(numbers.draw(), last.wrapping_add(1).max(1));
            // One that came late changes nothing.
            numbers.saw(last);
            assert!(![0, last].contains(&numbers.draw()));
        }
    }

    #[test]
    fn programs_share_a_counter_and_a_new_one_goes_on() {
        let folder = folder("shared");
        let (mut a, mut b) = (shared(&folder), shared(&folder));
        a.saw(65533);
        assert_eq!([a.draw(), b.draw(), b.draw(), a.draw()], [65534, 65535, 1, 2]);
        b.saw(10);
        assert_eq!((a.draw(), shared(&folder).draw()), (11, 12));
        let mut all: Vec<u16> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..500).map(|_| shared(&folder).draw()).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort_unstable();
        assert_eq!(all, (13..2013).collect::<Vec<_>>());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_spoilt_file_counts_as_a_new_one_and_links_are_not_followed() {
        let folder = folder("spoilt");
        let mut numbers = shared(&folder);
        numbers.draw();
        let file = folder.join("eth0-02:fa:de:00:00:01");
        std::fs::write(&file, "99999\n").unwrap();
        numbers.saw(7);
        assert!(numbers.file.is_some());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o664);
        std::os::unix::fs::symlink(&file, folder.join("symbolic")).unwrap();
        std::fs::hard_link(&file, folder.join("hard")).unwrap();
        for name in ["symbolic", "hard"] {
            open(&folder, name).unwrap_err();
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_counter_that_cannot_be_written_is_read() {
        let folder = folder("read");
        let name = "eth0-02:fa:de:00:00:01";
        let mut numbers = shared(&folder);
        numbers.saw(1234);
        assert_eq!(read(&folder, name), Some(1234));
        // To a file with a second name nobody writes, as to one of a folder that is only read.
        std::fs::hard_link(folder.join(name), folder.join("second")).unwrap();
        let mut first = std::collections::HashSet::new();
        for seed in 0..200_000 {
            fastrand::seed(seed);
            let mut alone = Numbers::shared_or_read(&folder, name, MacAddr([2, 0xFA, 0xDE, 0, 0, 1]));
            assert_eq!((alone.used, alone.latest, alone.file.is_some()), (Some(1234), None, false));
            let number = alone.draw();
            assert_eq!(alone.draw(), number.wrapping_add(1).max(1));
            first.insert(number);
        }
        assert!(!first.contains(&1234) && !first.contains(&0) && first.len() > 50_000, "{}", first.len());
        assert_eq!(shared_number(&folder, name), 1234, "nothing was written");
        // What the board tells goes before.
        let mut told = Numbers::shared_or_read(&folder, name, MacAddr([2, 0xFA, 0xDE, 0, 0, 1]));
        told.saw(1233);
        assert_eq!(told.draw(), 1234);
        for (content, expected) in [("99999\n", None), ("", None), ("00007\n", Some(7))] {
            std::fs::write(folder.join(name), content).unwrap();
            assert_eq!(read(&folder, name), expected);
        }
        assert_eq!(read(&folder, "nobody"), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn shared_number(folder: &Path, name: &str) -> u16 {
        std::fs::read_to_string(folder.join(name)).unwrap().trim_end().parse().unwrap()
    }

    #[test]
    fn one_who_holds_the_file_for_a_moment_is_waited_for() {
        let folder = folder("busy");
        let (mut a, mut b) = (shared(&folder), shared(&folder));
        let first = b.draw();
        flock(b.file.as_ref().unwrap(), FlockOperation::LockExclusive).unwrap();
        let holder = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            flock(b.file.as_ref().unwrap(), FlockOperation::Unlock).unwrap();
        });
        let second = a.draw();
        holder.join().unwrap();
        assert_eq!((second, a.file.is_some()), (first.wrapping_add(1).max(1), true));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn one_who_holds_the_file_stops_nobody() {
        let folder = folder("held");
        let (mut a, b) = (shared(&folder), shared(&folder));
        flock(b.file.as_ref().unwrap(), FlockOperation::LockExclusive).unwrap();
        let first = a.draw();
        assert!(a.file.is_none());
        assert_eq!(a.draw(), first.wrapping_add(1).max(1));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
