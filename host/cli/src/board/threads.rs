//! Scheduling of the threads that receive FADE.

use std::time::Duration;

use fadelink_receiver::schedule::{Cpus, Policy, Schedule};
use fadelink_receiver::WrongField;
use schemars::JsonSchema;
use serde::Deserialize;

use super::fields::in_range;
use crate::text::Text;

const PRIORITIES: (u32, u32) = (1, 99);
const SLICES: (u32, u32) = (100, 100_000);

/// Scheduling of threads.
#[derive(Debug, Default, clap::Args, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// CPUs of the receiving threads, as 2,4-7; without it, all
    #[arg(long, value_name = "LIST", conflicts_with = "by_ip")]
    pub cpus: Option<Text<Cpus>>,
    /// Real-time priority of the receiving threads, 1 to 99 (SCHED_FIFO; needs CAP_SYS_NICE); without it, they have none
    #[arg(long, value_name = "N", conflicts_with = "by_ip")]
    #[schemars(range(min = 1, max = 99))]
    pub priority: Option<u32>,
    /// Scheduler slice of the receiving threads in microseconds, 100 to 100000; a short slice reduces the wait after a
    /// wake-up (Linux 6.12 and later). Without it, that of the kernel
    #[arg(long, value_name = "N", conflicts_with_all = ["by_ip", "priority"])]
    #[schemars(range(min = 100, max = 100_000))]
    pub slice: Option<u32>,
}

impl Threads {
    /// The schedule that they say.
    ///
    /// # Errors
    /// A number out of its range, or two that exclude each other.
    pub fn schedule(&self) -> Result<Schedule, WrongField> {
        if let Some(priority) = self.priority {
            in_range("priority", priority, PRIORITIES)?;
        }
        if let Some(micros) = self.slice {
            in_range("slice", micros, SLICES)?;
            if self.priority.is_some() {
                return Err(WrongField::new("slice", micros, "expected either priority or slice"));
            }
        }
        let slice = self.slice.map(|micros| Policy::Slice(Duration::from_micros(micros.into())));
        let cpus = self.cpus.as_ref().map(|cpus| cpus.0.clone());
        Ok(Schedule { cpus, policy: self.priority.map(Policy::RealTime).or(slice) })
    }
}
