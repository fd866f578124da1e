//! A moment by the clocks that the computer has.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use jiff::Timestamp;
use rustix::time::{clock_gettime_dynamic, ClockId, DynamicClockId, Timespec};
use serde_json::{json, Value};

use crate::number;

/// Now in UTC.
pub fn utc() -> Timestamp {
    Timestamp::now()
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The PTP clock of a network card, as the kernel lists it with its device.
fn card_clock(interface: &str) -> Option<String> {
    let clocks = Path::new("/sys/class/net").join(interface).join("device/ptp");
    let name = std::fs::read_dir(clocks).ok()?.next()?.ok()?.file_name();
    name.into_string().ok()
}

/// The kernel's TAI, if it differs from UTC.
fn kernel_clock(utc: i64, tai: i64) -> Option<Value> {
    let offset = (tai - utc + 500_000_000).div_euclid(1_000_000_000);
    (offset != 0).then(|| json!({ "clock": "CLOCK_TAI", "ns": number::json(tai), "utc_offset": offset }))
}

/// Now in PTP time (TAI): by the clock of each card that has one, and by the kernel's if a PTP or NTP service has told it
/// the difference from UTC.
fn ptp<'a>(interfaces: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut clocks = Vec::new();
    for interface in interfaces {
        let Some(name) = card_clock(interface) else { continue };
        let Ok(device) = File::open(Path::new("/dev").join(&name)) else { continue };
        if let Ok(time) = clock_gettime_dynamic(DynamicClockId::Dynamic(device.as_fd())) {
            clocks.push(json!({ "clock": name, "interface": interface, "ns": number::json(nanoseconds(time)) }));
        }
    }
    let (utc, tai) = (rustix::time::clock_gettime(ClockId::Realtime), clock_gettime_dynamic(DynamicClockId::Tai));
    clocks.extend(tai.ok().and_then(|tai| kernel_clock(nanoseconds(utc), nanoseconds(tai))));
    clocks
}

/// Now, for a manifest.
pub fn now<'a>(interfaces: impl Iterator<Item = &'a str>) -> Value {
    json!({ "utc": utc().to_string(), "ptp": ptp(interfaces) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_digits_that_no_reader_rounds() {
        let (utc, tai) = (1_764_350_000_123_456_789, 1_764_350_037_123_456_790);
        let expected = json!({ "clock": "CLOCK_TAI", "ns": "1764350037123456790", "utc_offset": 37 });
        assert_eq!(kernel_clock(utc, tai), Some(expected));
        assert_eq!(kernel_clock(utc, utc + 1000), None);
    }
}
