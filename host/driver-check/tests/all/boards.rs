//! Boards of every firmware, with any quirks, over a bad cable, for the engine and the driver's rules side by side.
//! FADELINK_SEED reproduces a run.

use crate::model::{Both, FEB};
use fadelink_feb::example::Example;
use fadelink_feb::{Board, BoardSettings, Quirk, Quirks};
use fadelink_receiver::shared::Phase;
use fadelink_receiver::FebConfig;
use fadelink_wire::{fade1, fade10g, Firmware, MacAddr, Protocol};

/// RESET of another computer.
const RESET: fade10g::Request = fade10g::Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };
const OTHER: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf1]);

#[test]
fn boards_of_every_firmware_are_received_alike() {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let (mut complete, mut restarted, mut bytes) = ([0; 4], 0, 0);
    for case in 0..120 {
        let mut random = fastrand::Rng::with_seed(seed * 1000 + case);
        let firmware = *random.choice(&Firmware::ALL).unwrap();
        let protocol = firmware.protocol().unwrap_or(if random.bool() { Protocol::Fade10g } else { Protocol::Fade1 });
        let mut quirks = Quirks::of(firmware);
        if random.u8(..4) == 0 && protocol == Protocol::Fade10g {
            let more = Quirk::ALL.iter().map(|(quirk, _)| *quirk).filter(|_| random.bool());
            quirks = more.fold(quirks, Quirks::with);
        }
        let settings = BoardSettings { window: 16, quirks, ..BoardSettings::default() };
        let mut board = Board::new(protocol, FEB, settings, Example::default());
        let told = random.bool();
        let config = FebConfig {
            ring_packets: 64,
            window: 32,
            firmware: told.then_some(firmware),
            protocol: told.then_some(protocol),
            ..FebConfig::default()
        };
        let loss = *random.choice(&[0.0, 0.02, 0.2]).unwrap();
        for life in 0..3 {
            // A receiver that was killed says nothing to its board.
            let mut both = Both::new(config, true, seed + case + life);
            both.command(fade10g::CMD_START, 0);
            let (stop_at, killed) = (random.u64(200..1500), random.bool() && life < 2);
            for round in 0..20_000 {
                let now = both.now;
                for frame in both.sent().into_iter().filter(|_| random.f64() >= loss) {
                    board.take(&frame, now);
                }
                for _ in 0..random.usize(..4) {
                    if let Some(frame) = board.give(now).filter(|_| random.f64() >= loss) {
                        both.frame(frame);
                    }
                }
                both.wait(u64::from(random.u8(..4) == 0));
                // Now and then the board is reset, or loses its power.
                match random.u16(..4000) {
                    0 => match protocol {
                        Protocol::Fade10g => board.take(&RESET.to_frame(FEB, OTHER), now),
                        Protocol::Fade1 => board.take(&fade1::Request::Reset.to_frame(FEB, OTHER), now),
                    },
                    1 => board = Board::new(protocol, FEB, settings, Example::default()),
                    _ => {}
                }
                bytes += both.read().len();
                if round == stop_at && (killed || !both.is_free()) {
                    break;
                }
                if round >= stop_at
                    && both.is_free()
                    && both.shared.phase() == Phase::Running
                    && !both.driver.feb.stop_sent
                {
                    both.command(fade10g::CMD_STOP, 0);
                }
                if both.shared.phase() != Phase::Running && both.is_free() {
                    break;
                }
            }
            let at = firmware as usize + usize::from(firmware == Firmware::Fadelink && both.is_fade1()) * 3;
            complete[at] += u32::from(both.shared.phase() == Phase::Complete);
            restarted += both.driver.feb.stats.interrupted;
        }
    }
    assert!(
        complete.iter().all(|n| *n > 5) && restarted > 20 && bytes > 10_000_000,
        "{complete:?} {restarted} {bytes}"
    );
}
