//! Checks of a network card.

use fadelink_wire::{ethernet, fade1, fade10g};

use super::ethtool::{self, CardSettings};
use super::files::Files;
use super::Finding;

/// Smallest MTU with which data frames pass.
const MTU_FADE10G: usize = fade10g::DATA_FRAME_LEN - ethernet::HEADER_LEN;
const MTU_FADE1: usize = fade1::DATA_FRAME_LEN - ethernet::HEADER_LEN;
/// Counters of frames that the card itself lost.
const LOSSES: [&str; 4] = ["rx_missed_errors", "rx_fifo_errors", "rx_crc_errors", "rx_length_errors"];

pub fn examine(files: &Files, iface: &str) -> anyhow::Result<Vec<Finding>> {
    let mut findings = vec![link(files, iface), mtu(files, iface)];
    match ethtool::ask(iface) {
        Ok(settings) => findings.extend(of_driver(&settings, iface)),
        Err(error) => findings.push(Finding::unknown("settings of the driver", format!("{error:#}"))),
    }
    findings.extend([rps(files, iface), interrupts(files, iface), node(files, iface), losses(files, iface)]);
    Ok(findings)
}

fn link(files: &Files, iface: &str) -> Finding {
    const CHECK: &str = "link";
    let of = |name: &str| files.text(&format!("sys/class/net/{iface}/{name}"));
    if !files.is_ethernet(iface) {
        let step = "name the interface that the boards are connected to";
        return Finding::fault(CHECK, "not Ethernet", "no board can send to it", step.into());
    }
    if let Some(master) = files.master(iface) {
        let meaning =
            "nothing is received from it: that takes all frames, so name that, or take the interface out of it";
        return Finding::fault(
            CHECK,
            format!("a port of {master}"),
            meaning,
            format!("ip link set dev {iface} nomaster"),
        );
    }
    let flags = of("flags").and_then(|flags| u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    if flags.is_none_or(|flags| flags & libc::IFF_UP as u32 == 0) {
        return Finding::fault(CHECK, "down", "nothing is received", format!("ip link set dev {iface} up"));
    }
    if of("carrier").as_deref() == Some("0") {
        let step = "check the cable, and that both ends have the same speed";
        return Finding::fault(CHECK, "no carrier", "nothing is received", step.into());
    }
    match of("speed").filter(|speed| !speed.starts_with('-')) {
        Some(speed) => Finding::good(CHECK, format!("up, {speed} Mb/s")),
        None => Finding::good(CHECK, "up"),
    }
}

fn mtu(files: &Files, iface: &str) -> Finding {
    const CHECK: &str = "MTU";
    let fix = format!("ip link set dev {iface} mtu 9000");
    match files.value::<usize>(&format!("sys/class/net/{iface}/mtu")) {
        Some(mtu) if mtu < MTU_FADE1 => {
            let meaning = "data frames do not fit: FADE-10G needs 9000, FADE v1 needs 1500";
            Finding::fault(CHECK, mtu.to_string(), meaning, fix)
        }
        Some(mtu) if mtu < MTU_FADE10G => {
            Finding::improve(CHECK, mtu.to_string(), "FADE-10G is refused, FADE v1 is received", fix)
        }
        Some(mtu) => Finding::good(CHECK, mtu.to_string()),
        None => Finding::unknown(CHECK, "unknown"),
    }
}

/// What `ethtool` shows.
fn of_driver(settings: &CardSettings, iface: &str) -> Vec<Finding> {
    vec![ring(settings, iface), moderation(settings, iface), offloads(settings, iface)]
}

fn ring(settings: &CardSettings, iface: &str) -> Finding {
    const CHECK: &str = "receive ring";
    match settings.ring {
        Some((now, most)) if now < most => {
            let meaning = "frames that find the ring full are lost, and must be repeated";
            let found = format!("{now} of {most} descriptors");
            Finding::improve(CHECK, found, meaning, format!("ethtool -G {iface} rx {most}"))
        }
        Some((now, _)) => Finding::good(CHECK, format!("{now} descriptors, the maximum")),
        None => Finding::good(CHECK, "the driver has no setting"),
    }
}

fn moderation(settings: &CardSettings, iface: &str) -> Finding {
    const CHECK: &str = "interrupt moderation";
    let (usecs, adaptive) = (settings.rx_usecs, settings.adaptive_rx == Some(true));
    let found = match (usecs, adaptive) {
        (None, false) => return Finding::good(CHECK, "the driver has no setting"),
        (Some(0), false) => return Finding::good(CHECK, "off"),
        (_, true) => "adaptive".into(),
        (Some(usecs), false) => format!("{usecs} us"),
    };
    let fix = match (usecs, adaptive) {
        (None, _) => format!("ethtool -C {iface} adaptive-rx off"),
        (_, true) => format!("ethtool -C {iface} adaptive-rx off rx-usecs 0"),
        _ => format!("ethtool -C {iface} rx-usecs 0"),
    };
    let meaning = "frames wait in the card, and a board can send only its window without an ACK";
    Finding::improve(CHECK, found, meaning, fix)
}

fn offloads(settings: &CardSettings, iface: &str) -> Finding {
    const CHECK: &str = "offloads";
    let Some(on) = &settings.features else { return Finding::good(CHECK, "the driver has no setting") };
    let is_on = |name: &str| on.iter().any(|feature| feature == name);
    if is_on("rx-lro") {
        let meaning = "the card merges TCP segments; a capture does not show what was on the wire";
        return Finding::improve(CHECK, "lro on", meaning, format!("ethtool -K {iface} lro off"));
    }
    // It merges what TCP senders send, and leaves FADE's frames alone.
    Finding::good(CHECK, if is_on("rx-gro") { "gro on, lro off" } else { "gro off, lro off" })
}

fn rps(files: &Files, iface: &str) -> Finding {
    const CHECK: &str = "receive packet steering";
    let queues = format!("sys/class/net/{iface}/queues");
    let mut masks =
        files.names(&queues).into_iter().filter_map(|queue| files.text(&format!("{queues}/{queue}/rps_cpus")));
    let is_off = |mask: &String| mask.chars().all(|digit| matches!(digit, '0' | ','));
    match masks.find(|mask| !is_off(mask)) {
        None => Finding::good(CHECK, "off"),
        Some(mask) => {
            let meaning = "each frame moves to another CPU, which costs time";
            let fix = format!("echo 0 | tee /sys/class/net/{iface}/queues/rx-*/rps_cpus");
            Finding::improve(CHECK, format!("CPU mask {mask}"), meaning, fix)
        }
    }
}

/// CPUs that the card's interrupts go to, and who moves them about.
fn interrupts(files: &Files, iface: &str) -> Finding {
    const CHECK: &str = "interrupts";
    let numbers = files.names(&format!("sys/class/net/{iface}/device/msi_irqs"));
    let cpus = |irq: &String| {
        let of = |name: &str| files.text(&format!("proc/irq/{irq}/{name}"));
        of("effective_affinity_list").or_else(|| of("smp_affinity_list"))
    };
    let mut cpus: Vec<_> = numbers.iter().filter_map(cpus).collect();
    cpus.sort();
    cpus.dedup();
    if cpus.is_empty() {
        return Finding::good(CHECK, "the card has no own interrupts");
    }
    let found = format!("on CPUs {}", cpus.join(" "));
    let is_balanced = files.names("proc").iter().any(|process| {
        process.starts_with(|digit: char| digit.is_ascii_digit())
            && files.text(&format!("proc/{process}/comm")).as_deref() == Some("irqbalance")
    });
    if is_balanced {
        let meaning = "irqbalance moves interrupts between CPUs while data flows";
        return Finding::improve(CHECK, found, meaning, "systemctl disable --now irqbalance".into());
    }
    Finding::good(CHECK, found)
}

/// The processors that are next to the card.
fn node(files: &Files, iface: &str) -> Finding {
    const CHECK: &str = "NUMA node";
    let nodes = files.names("sys/devices/system/node").into_iter().filter(|name| name.starts_with("node"));
    let node = files.value::<i32>(&format!("sys/class/net/{iface}/device/numa_node")).filter(|node| *node >= 0);
    let cpus = node.and_then(|node| files.text(&format!("sys/devices/system/node/node{node}/cpulist")));
    match (nodes.count(), cpus) {
        (0 | 1, _) => Finding::good(CHECK, "all"),
        (_, None) => Finding::unknown(CHECK, "unknown"),
        (_, Some(cpus)) => {
            let meaning = "on other CPUs each frame comes from remote memory";
            let fix = format!("fadelink receive --cpus {cpus} ...");
            Finding::improve(CHECK, format!("CPUs {cpus}"), meaning, fix)
        }
    }
}

fn losses(files: &Files, iface: &str) -> Finding {
    const CHECK: &str = "frames lost by the card";
    let count = |name: &&str| files.value::<u64>(&format!("sys/class/net/{iface}/statistics/{name}"));
    let lost: Vec<_> = LOSSES.iter().filter_map(|name| Some((name, count(name).filter(|n| *n > 0)?))).collect();
    if lost.is_empty() {
        return Finding::good(CHECK, "none");
    }
    let found = lost.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ");
    let fix = match lost.iter().any(|(name, _)| matches!(**name, "rx_crc_errors" | "rx_length_errors")) {
        true => "check cable and optics, then check again in a minute",
        false => "set ring and moderation as above, then check again in a minute",
    };
    Finding::improve(
        CHECK,
        found,
        "since the interface exists; FADE and TCP repair each loss, UDP does not",
        fix.into(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn one(finding: &Finding) -> (State, &str, Option<&str>) {
        (finding.state, &finding.found, finding.fix.as_deref())
    }

    #[test]
    fn settings_of_a_driver_and_what_mends_them() {
        let settings = CardSettings {
            ring: Some((512, 4096)),
            rx_usecs: Some(50),
            adaptive_rx: Some(true),
            features: Some(vec!["rx-gro".into(), "rx-lro".into()]),
        };
        let findings = of_driver(&settings, "eth1");
        let all: Vec<_> = findings.iter().map(one).collect();
        assert_eq!(all[0], (State::Improve, "512 of 4096 descriptors", Some("ethtool -G eth1 rx 4096")));
        assert_eq!(all[1], (State::Improve, "adaptive", Some("ethtool -C eth1 adaptive-rx off rx-usecs 0")));
        assert_eq!(all[2], (State::Improve, "lro on", Some("ethtool -K eth1 lro off")));
        let settings = CardSettings { rx_usecs: Some(3), adaptive_rx: None, ..settings };
        assert_eq!(one(&of_driver(&settings, "eth1")[1]), (State::Improve, "3 us", Some("ethtool -C eth1 rx-usecs 0")));
        let good = CardSettings {
            ring: Some((4096, 4096)),
            rx_usecs: Some(0),
            adaptive_rx: Some(false),
            features: Some(vec!["rx-gro".into()]),
        };
        for settings in [good, CardSettings::default()] {
            let findings = of_driver(&settings, "eth1");
            assert!(findings.iter().all(|finding| finding.state == State::Good && finding.fix.is_none()));
        }
    }

    /// A computer with two nodes, whose card is at the second, and with irqbalance.
    #[test]
    fn a_card_far_away_with_interrupts_that_wander() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("sys/class/net/eth1/device/numa_node", "1\n"),
            ("sys/class/net/eth1/device/msi_irqs/40", ""),
            ("sys/class/net/eth1/statistics/rx_missed_errors", "7\n"),
            ("sys/class/net/eth1/statistics/rx_crc_errors", "0\n"),
            ("sys/devices/system/node/node0/cpulist", "0-7\n"),
            ("sys/devices/system/node/node1/cpulist", "8-15\n"),
            ("proc/irq/40/effective_affinity_list", "9\n"),
            ("proc/77/comm", "irqbalance\n"),
        ] {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let files = Files::below(root.path());
        assert_eq!(one(&node(&files, "eth1")), (State::Improve, "CPUs 8-15", Some("fadelink receive --cpus 8-15 ...")));
        let wandering = (State::Improve, "on CPUs 9", Some("systemctl disable --now irqbalance"));
        assert_eq!(one(&interrupts(&files, "eth1")), wandering);
        assert_eq!(one(&losses(&files, "eth1")).1, "rx_missed_errors 7");
        for (file, text) in
            [("eth1/ifindex", "4\n"), ("eth1/type", "1\n"), ("eth1/flags", "0x1003\n"), ("bond0/flags", "0x1443\n")]
        {
            let path = root.path().join("sys/class/net").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(one(&link(&files, "eth1")), (State::Good, "up", None));
        let master = root.path().join("sys/class/net/eth1/master");
        std::os::unix::fs::symlink("../bond0", master).unwrap();
        let port = (State::Fault, "a port of bond0", Some("ip link set dev eth1 nomaster"));
        assert_eq!(one(&link(&files, "eth1")), port);
        std::fs::remove_file(root.path().join("proc/77/comm")).unwrap();
        assert_eq!(one(&interrupts(&files, "eth1")).0, State::Good);
    }
}
