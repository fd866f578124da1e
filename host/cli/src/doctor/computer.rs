//! Checks of the computer.

use std::time::Duration;

use fadelink_receiver::schedule::{Cpus, Policy, Schedule};

use super::files::Files;
use super::Finding;
use crate::receive::UDP_BUFFER;

const CPUS: &str = "sys/devices/system/cpu";
/// Exit latency of an idle state, in microseconds, up to which it costs less than a wake-up does anyway.
const SHALLOW: u32 = 10;
/// Numbers of capabilities (capabilities(7), linux/capability.h).
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_NICE: u32 = 23;

pub fn examine(files: &Files) -> anyhow::Result<Vec<Finding>> {
    let slice = std::thread::spawn(slice).join().unwrap_or_else(|_| Finding::unknown("scheduler slice", "unknown"));
    Ok(vec![capabilities(files), processors()?, governor(files), idle(files), slice, buffer(files)])
}

fn capabilities(files: &Files) -> Finding {
    const CHECK: &str = "capabilities";
    let status = files.text("proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(effective) = effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()) else {
        return Finding::unknown(CHECK, "unknown");
    };
    let program = std::env::current_exe().map_or("fadelink".into(), |path| path.display().to_string());
    let fix = format!("setcap cap_net_raw,cap_sys_nice+ep {program}");
    let has = |capability: u32| effective >> capability & 1 == 1;
    match (has(CAP_NET_RAW), has(CAP_SYS_NICE)) {
        (false, _) => Finding::fault(
            CHECK,
            "no CAP_NET_RAW",
            "FADE cannot be received, except with --backend kernel; --tcp and --udp work",
            fix,
        ),
        (_, false) => Finding::improve(CHECK, "CAP_NET_RAW, no CAP_SYS_NICE", "--priority is refused", fix),
        _ => Finding::good(CHECK, "CAP_NET_RAW, CAP_SYS_NICE"),
    }
}

fn processors() -> anyhow::Result<Finding> {
    const CHECK: &str = "processors";
    let allowed = Cpus::allowed()?;
    Ok(match allowed.count() {
        1 => {
            let meaning = "interrupts, receiver and sinks share one processor";
            let fix = "allow two or more: taskset, the container or the virtual machine limits them".into();
            Finding::improve(CHECK, format!("only CPU {allowed}"), meaning, fix)
        }
        count => Finding::good(CHECK, format!("{count}: CPUs {allowed}")),
    })
}

/// Directories of the CPUs.
fn cpus(files: &Files) -> impl Iterator<Item = String> {
    let is_cpu = |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
    files.names(CPUS).into_iter().filter(is_cpu).map(|name| format!("{CPUS}/{name}"))
}

fn governor(files: &Files) -> Finding {
    const CHECK: &str = "frequency governor";
    let mut governors: Vec<_> =
        cpus(files).filter_map(|cpu| files.text(&format!("{cpu}/cpufreq/scaling_governor"))).collect();
    governors.sort();
    governors.dedup();
    match governors.iter().find(|governor| *governor != "performance") {
        None if governors.is_empty() => Finding::good(CHECK, "the kernel does not change the frequency"),
        None => Finding::good(CHECK, "performance"),
        Some(other) => {
            let meaning = "after a sleep a processor is slow for a while";
            Finding::improve(CHECK, other, meaning, "cpupower frequency-set --governor performance".into())
        }
    }
}

fn idle(files: &Files) -> Finding {
    const CHECK: &str = "idle states";
    let states = cpus(files).flat_map(|cpu| {
        let idle = format!("{cpu}/cpuidle");
        files.names(&idle).into_iter().map(move |state| format!("{idle}/{state}")).collect::<Vec<_>>()
    });
    let enabled = states.filter(|state| files.text(&format!("{state}/disable")).as_deref() != Some("1"));
    let latency = enabled.filter_map(|state| files.value::<u32>(&format!("{state}/latency"))).max();
    match latency {
        None => Finding::good(CHECK, "the kernel uses no idle states"),
        Some(latency) if latency <= SHALLOW => Finding::good(CHECK, format!("{latency} us to wake up")),
        Some(latency) => {
            let meaning = "a frame after a pause waits until its processor wakes up";
            let fix = format!("cpupower idle-set --disable-by-latency {SHALLOW}");
            Finding::improve(CHECK, format!("{latency} us to wake up"), meaning, fix)
        }
    }
}

/// In a thread of its own: it takes a slice.
fn slice() -> Finding {
    const CHECK: &str = "scheduler slice";
    let shortest = Schedule { cpus: None, policy: Some(Policy::Slice(Duration::from_micros(100))) };
    match shortest.apply() {
        Ok(()) => Finding::good(CHECK, "available: fadelink receive --slice 100 ..."),
        Err(_) => {
            let meaning = "needs Linux 6.12 or later; without it the receiver waits longer when other programs run";
            Finding::improve(CHECK, "none", meaning, "fadelink receive --priority 10 ...".into())
        }
    }
}

fn buffer(files: &Files) -> Finding {
    const CHECK: &str = "largest socket buffer";
    match files.value::<u64>("proc/sys/net/core/rmem_max") {
        None => Finding::unknown(CHECK, "unknown"),
        Some(bytes) if bytes < UDP_BUFFER.into() => {
            let meaning = "--udp loses bursts that do not fit, unless it runs with CAP_NET_ADMIN";
            let fix = format!("sysctl -w net.core.rmem_max={UDP_BUFFER}");
            Finding::improve(CHECK, format!("{bytes} bytes"), meaning, fix)
        }
        Some(bytes) => Finding::good(CHECK, format!("{bytes} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn files(list: &[(&str, &str)]) -> (tempfile::TempDir, Files) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in list {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let files = Files::below(root.path());
        (root, files)
    }

    #[test]
    fn one_processor_that_saves_power_is_enough() {
        let governors = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        let second = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
        let (_root, found) = files(&[(governors, "performance\n"), (second, "powersave\n")]);
        let finding = governor(&found);
        assert_eq!((finding.state, finding.found.as_str()), (State::Improve, "powersave"));
        let (_root, found) = files(&[(governors, "performance\n"), (second, "performance\n")]);
        assert_eq!(governor(&found).state, State::Good);
        assert_eq!(governor(&files(&[]).1).state, State::Good);
    }

    #[test]
    fn idle_states_that_are_off_do_not_count() {
        let deep = "sys/devices/system/cpu/cpu0/cpuidle/state2";
        let of = |disabled: &str| {
            let (latency, disable) = (format!("{deep}/latency"), format!("{deep}/disable"));
            let (_root, found) = files(&[(&latency, "133\n"), (&disable, disabled)]);
            idle(&found)
        };
        assert_eq!((of("0\n").state, of("0\n").found.as_str()), (State::Improve, "133 us to wake up"));
        assert_eq!(of("1\n").state, State::Good);
    }

    #[test]
    fn capabilities_by_their_numbers() {
        let of =
            |set: &str| capabilities(&files(&[("proc/self/status", &format!("Name:\tx\nCapEff:\t{set}\n"))]).1).state;
        assert_eq!(of("0000000000000000"), State::Fault);
        assert_eq!(of("0000000000002000"), State::Improve);
        assert_eq!(of("0000000000802000"), State::Good);
    }

    #[test]
    fn a_small_socket_buffer() {
        let finding = buffer(&files(&[("proc/sys/net/core/rmem_max", "212992\n")]).1);
        assert_eq!(finding.fix.as_deref(), Some("sysctl -w net.core.rmem_max=33554432"));
    }
}
