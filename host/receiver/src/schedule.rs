//! Scheduling of a receiving thread: its CPUs and its policy (sched(7)).

use std::fmt;
use std::io;
use std::mem::{size_of, zeroed};
use std::str::FromStr;
use std::time::Duration;

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// What a thread asks of the scheduler. The default asks for nothing: all stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The CPUs that it may run on.
    pub cpus: Option<Cpus>,
    /// When it gets one.
    pub policy: Option<Policy>,
}

/// When a thread gets a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Before all others of lower priority, 1 to 99, and for as long as it likes (SCHED_FIFO). Needs CAP_SYS_NICE.
    RealTime(u32),
    /// In its fair share, in slices of this length, 100 us to 100 ms: with a short one it waits less after a wake-up
    /// (SCHED_OTHER, Linux 6.12 and later).
    Slice(Duration),
}

/// Numbers of CPUs, in order and each once. As text: a list of numbers and ranges, as `0,4-7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus(Vec<usize>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
        let range = |part: &str| match part.split_once('-') {
            Some((first, last)) => Some(number(first)?..=number(last)?).filter(|range| !range.is_empty()),
            None => number(part).map(|cpu| cpu..=cpu),
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        let expected = || format!("expected a list of CPUs below {}, as 0,4-7", CpuSet::MAX_CPU);
        let mut cpus: Vec<_> = ranges.ok_or_else(expected)?.into_iter().flatten().collect();
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Cpus(cpus))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.0.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let (first, last) = (run[0], run[run.len() - 1]);
            let comma = if i == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl Cpus {
    /// How many they are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Those that the calling thread may run on.
    ///
    /// # Errors
    /// The operating system's.
    pub fn allowed() -> io::Result<Cpus> {
        let set = sched_getaffinity(None)?;
        Ok(Cpus((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()))
    }
}

impl Schedule {
    /// Applies to the calling thread. Threads that it starts later have its CPUs, but neither priority nor slice.
    ///
    /// # Errors
    /// CPUs that the thread may not use, a priority without the capability for it, a kernel without slices; the message
    /// says what to do.
    pub fn apply(&self) -> io::Result<()> {
        if let Some(cpus) = &self.cpus {
            let allowed = Cpus::allowed()?;
            let mut set = CpuSet::new();
            cpus.0.iter().for_each(|cpu| set.set(*cpu));
            sched_setaffinity(None, &set).map_err(|error| {
                let message = format!("CPUs {cpus}: {error}; this program may run on {allowed}");
                io::Error::new(io::Error::from(error).kind(), message)
            })?;
        }
        self.policy.map_or(Ok(()), Policy::apply)
    }
}

impl Policy {
    fn apply(self) -> io::Result<()> {
        // SAFETY: all-zero attributes are valid.
        let mut attributes: libc::sched_attr = unsafe { zeroed() };
        attributes.size = size_of::<libc::sched_attr>() as u32;
        attributes.sched_flags = libc::SCHED_FLAG_RESET_ON_FORK as u64;
        match self {
            Policy::RealTime(priority) => {
                attributes.sched_policy = libc::SCHED_FIFO as u32;
                attributes.sched_priority = priority;
            }
            Policy::Slice(slice) => {
                attributes.sched_policy = libc::SCHED_OTHER as u32;
                attributes.sched_runtime = slice.as_nanos() as u64;
            }
        }
        // SAFETY: the attributes are live and their size is in them; 0 is the calling thread.
        if unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } < 0 {
            let error = io::Error::last_os_error();
            let hint = match (self, error.raw_os_error()) {
                (Policy::RealTime(_), Some(libc::EPERM)) => "; run it as root or give it CAP_SYS_NICE",
                (Policy::RealTime(_), Some(libc::EINVAL)) => "; expected 1 to 99",
                _ => "",
            };
            return Err(io::Error::new(error.kind(), format!("{self}: {error}{hint}")));
        }
        match self {
            Policy::Slice(slice) if slice_of_this_thread()? != slice => {
                let message =
                    format!("{self}: not supported by this kernel; use Linux 6.12 or later, and 100 us to 100 ms");
                Err(io::Error::new(io::ErrorKind::Unsupported, message))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::RealTime(priority) => write!(f, "real-time priority {priority}"),
            Policy::Slice(slice) => write!(f, "a scheduler slice of {} us", slice.as_micros()),
        }
    }
}

/// A kernel without slices takes one for nothing and tells 0.
fn slice_of_this_thread() -> io::Result<Duration> {
    // SAFETY: all-zero attributes are valid, and their size is given; 0 is the calling thread.
    unsafe {
        let mut attributes: libc::sched_attr = zeroed();
        let size = size_of::<libc::sched_attr>();
        if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Duration::from_nanos(attributes.sched_runtime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> Result<Cpus, String> {
        text.parse()
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("3,0-2,2").unwrap(), Cpus(vec![0, 1, 2, 3]));
        assert_eq!(cpus("7,3,4,5").unwrap().to_string(), "3-5,7");
        for bad in ["", "1,", "-1", "2-1", "x", "1024", "0-99999999999"] {
            assert!(cpus(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_thread_is_pinned_and_one_that_may_not_is_told() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let first = Cpus(vec![Cpus::allowed().unwrap().0[0]]);
                let schedule = Schedule { cpus: Some(first.clone()), policy: None };
                schedule.apply().unwrap();
                assert_eq!(Cpus::allowed().unwrap(), first);
                let error = Schedule { cpus: Some(Cpus(vec![1023])), policy: None }.apply().unwrap_err().to_string();
                assert!(error.starts_with("CPUs 1023: ") && error.ends_with(&first.to_string()), "{error}");
            });
        });
    }

    #[test]
    fn a_slice_is_had_or_refused() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let slice = Duration::from_micros(100);
                match Policy::Slice(slice).apply() {
                    Ok(()) => assert_eq!(slice_of_this_thread().unwrap(), slice),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}"),
                }
                let error = Policy::RealTime(100).apply().unwrap_err().to_string();
                assert!(error.starts_with("real-time priority 100: "), "{error}");
            });
        });
    }
}
