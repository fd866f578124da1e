//! Whole traces for the engine and the driver's rules: both get the same frames and commands. They must send the
//! same frames, store the same packets and have equal counters. FADELINK_SEED reproduces a run.

use crate::model::{Both, FEB, PC};
use fadelink_receiver::FebConfig;
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade10g::{self, Data, Response, DATA_FRAME_LEN, PACKET_BYTES};
use fadelink_wire::{Firmware, Protocol, WordOrder};

fn data_frame(random: &mut fastrand::Rng, number: u32, last: Option<u64>, response: Option<Response>) -> Vec<u8> {
    let mut payload = [0u8; PACKET_BYTES];
    payload[..8].copy_from_slice(&random.u64(..).to_le_bytes());
    if let Some(words) = last {
        payload[PACKET_BYTES - 8..].copy_from_slice(&words.to_le_bytes());
    }
    let (sequence, delay) = (random.u16(..), random.u32(..));
    let data = Data { sequence, packet: number, delay, response, last, payload: &payload };
    let mut frame = vec![0; DATA_FRAME_LEN];
    data.write(PC, FEB, frame.as_mut_slice().try_into().unwrap()).unwrap();
    frame
}

#[test]
fn random_traces_give_the_same_actions() {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut bytes, mut begun, mut complete, mut resets, mut interrupted, mut again) = (0, 0, 0, 0, 0, 0);
    for case in 0..90 {
        let window = random.u32(1..=64);
        let ring_packets = u64::from(window.next_power_of_two()) << random.u32(..2);
        let config = FebConfig {
            ring_packets,
            window,
            first_packet: random.u32(..),
            protocol: Some(Protocol::Fade10g),
            firmware: *random.choice(&[None, Some(Firmware::Fadelink), Some(Firmware::Published10g)]).unwrap(),
            word_order: *random.choice(&[None, Some(WordOrder::Little), Some(WordOrder::Big)]).unwrap(),
            ..FebConfig::default()
        };
        let mut both = Both::new(config, random.u8(..5) > 0, seed + case);
        for _ in 0..1500 {
            both.wait(random.u64(..4));
            // The response that would be right now, sometimes spoilt.
            let pending = &both.driver.feb;
            let (code, csn) = match pending.start.stage {
                1 => (fade10g::CMD_IDENTIFY, pending.start.csn),
                3 => (fade10g::CMD_START, pending.start.csn),
                4 => (fade10g::CMD_STOP, pending.start.csn),
                _ => (pending.pending_code, pending.pending_csn),
            };
            let identity = 1 << 56 | 5 << 48 | random.u64(..1 << 4) << 40 | random.u64(..1 << 40);
            let value = if code == fade10g::CMD_IDENTIFY && random.bool() { identity } else { 0 };
            let mut response = Response { code, csn, value };
            let spoilt = random.u8(..20);
            let is_start = code == fade10g::CMD_START;
            let permit = random.u64(1..3) << 2 | fade10g::STATUS_PERMIT;
            match spoilt {
                0 => response.csn ^= 1,
                1 => response.code ^= 1,
                2 | 3 => response.value = random.u64(1..3),
                9..14 if is_start && pending.start.permit > 0 => response.value = permit,
                4..9 if is_start => response.value = permit,
                _ => {}
            }
            let in_order = pending.window.in_order as u32;
            let near = config.first_packet.wrapping_add(in_order);
            match random.u8(..100) {
                0..6 if both.is_free() => {
                    let codes = [
                        fade10g::CMD_START,
                        fade10g::CMD_STOP,
                        fade10g::CMD_IDENTIFY,
                        fade10g::CMD_RESET_BY,
                        0x0100,
                        0xffff,
                    ];
                    both.command(*random.choice(&codes).unwrap(), random.u32(..));
                }
                6..16 => both.frame(&response.to_frame(PC, FEB)),
                16..18 => both.frame(&Response { code: 0, csn: 0, value: 0 }.to_frame(PC, FEB)),
                18..24 => bytes += both.read().len(),
                24..28 => {
                    let mut frame = data_frame(&mut random, near, None, None);
                    match random.u8(..3) {
                        0 => frame.truncate(random.usize(..DATA_FRAME_LEN)),
                        1 => frame.push(0),
                        _ => {
                            let at = random.usize(12..40);
                            frame[at] ^= 1 << random.u8(..8);
                        }
                    }
                    // The driver is asked only about frames for this computer from this FEB.
                    if Header::split(&frame).is_some_and(|(header, _)| header.src == FEB) {
                        both.frame(&frame);
                    }
                }
                28..30 => {
                    let words = random.u64(..1030);
                    let number = near.wrapping_add(random.u32(..3));
                    let frame = data_frame(&mut random, number, Some(words), None);
                    both.frame(&frame);
                }
                _ => {
                    let number =
                        near.wrapping_add(*random.choice(&[0, 0, 0, 1, 2, 3, u32::MAX, 63, 64, 1000]).unwrap());
                    let riding = (spoilt < 3 || random.u8(..10) == 0).then_some(response).filter(|r| r.code != 0);
                    let frame = data_frame(&mut random, number, None, riding);
                    both.frame(&frame);
                }
            }
            begun += u32::from(both.driver.feb.started);
            complete += u32::from(both.driver.feb.state == 2);
        }
        resets += both.driver.feb.stats.resets;
        interrupted += both.driver.feb.stats.interrupted;
        again += both.driver.feb.stats.begun_again;
    }
    assert!(
        bytes > 5_000_000 && begun > 5000 && complete > 100 && resets > 1000 && interrupted > 30 && again > 2,
        "{bytes} {begun} {complete} {resets} {interrupted} {again}"
    );
}
