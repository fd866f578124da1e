//! Whole traces of FADE v1 for the engine and the driver's rules: both get the same frames. They must send the same
//! frames, store the same packets and have equal counters. FADELINK_SEED reproduces a run.

use crate::model::{Both, FEB, PC};
use fadelink_receiver::FebConfig;
use fadelink_wire::fade1::{Data, Phase, State, DATA_FRAME_LEN, DATA_HEADER_LEN, RETRY_FADELINK};
use fadelink_wire::{fade10g, Firmware, MacAddr, Permit, Protocol, Resets};

fn data_frame(random: &mut fastrand::Rng, number: u64) -> Vec<u8> {
    let mut frame = vec![0; DATA_FRAME_LEN];
    let (set, packet) = ((number / 32) as u16, (number % 32) as u8);
    let head = frame.first_chunk_mut::<DATA_HEADER_LEN>().unwrap();
    let (delay, block_acks) = (random.u32(..1 << 30), random.u8(..8) > 0);
    Data { set, packet, retry: RETRY_FADELINK, delay, block_acks, same_words: true, payload: &[] }
        .write_header(PC, FEB, head);
    frame[DATA_HEADER_LEN..DATA_HEADER_LEN + 8].copy_from_slice(&random.u64(..).to_le_bytes());
    frame
}

const PHASES: [Phase; 5] = [Phase::Ended, Phase::None, Phase::Reset, Phase::Stopping, Phase::Running];

/// What a board answers of a transmission; without a `phase`: any.
fn state_frame(random: &mut fastrand::Rng, phase: Option<Phase>, transmission: u16, packets: u32) -> Vec<u8> {
    let phase = phase.unwrap_or_else(|| *random.choice(&PHASES).unwrap());
    let by = random.bool().then(|| MacAddr([2, 0, 0, 0, 0, random.u8(..)]));
    let resets = random.bool().then(|| Resets { count: random.u8(..), by });
    let permit = random.bool().then(|| Permit::new(random.u32(..3)));
    State { phase, transmission, packets, resets, checksum: None, permit }.to_frame(PC, FEB).to_vec()
}

#[test]
fn random_traces_give_the_same_actions() {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut endings = [0; 7];
    let (mut bytes, mut complete, mut aborted, mut errors, mut full, mut shown, mut again) = (0, 0, 0, 0, 0, 0, 0);
    for case in 0..40 {
        let config = FebConfig {
            ring_packets: 8 << random.u32(..3),
            window: 8,
            protocol: Some(Protocol::Fade1),
            firmware: *random.choice(&[None, Some(Firmware::PublishedV1)]).unwrap(),
            ..FebConfig::default()
        };
        let mut both = Both::new(config, true, seed);
        // Before START: strays, and RESET for them.
        for _ in 0..random.usize(..4) {
            both.frame(&data_frame(&mut random, 5));
            both.wait(random.u64(..60));
        }
        both.command(fade10g::CMD_START, 0);
        both.wait(60);
        // Before any data: permits, used up or not, and STOP.
        for _ in 0..if random.u8(..3) > 0 { random.usize(2..8) } else { 0 } {
            let number = both.driver.feb.number.wrapping_add(random.u16(..2));
            both.frame(&state_frame(&mut random, None, number, 0));
            both.wait(random.u64(..120));
        }
        shown += u32::from(both.driver.feb.has_shown);
        again += both.driver.feb.stats.begun_again;
        if random.u8(..4) == 0 {
            both.frame(&data_frame(&mut random, 32 * 9));
            both.wait(random.u64(..150));
        }
        let steps = if random.u8(..5) == 0 { 0 } else { 1200 };
        for step in 0..steps {
            let next = both.driver.feb.sets.in_order;
            match random.u8(..100) {
                0..3 => bytes += both.read().len(),
                8..10 => both.wait(random.u64(..40)),
                14..30 => both.confirm(),
                30 if random.bool() => {
                    let number = both.driver.feb.number.wrapping_add(random.u8(..4) as u16 / 3);
                    both.frame(&state_frame(&mut random, None, number, next as u32));
                }
                10 if step > 600 && random.u8(..4) == 0 => both.command(fade10g::CMD_STOP, 0),
                11 if random.u8(..8) == 0 => {
                    let mut frame = data_frame(&mut random, next);
                    frame[19] |= random.u8(..);
                    frame[18] |= random.u8(..4) | if random.bool() { 0x80 } else { 0 };
                    both.frame(&frame);
                }
                12 => {
                    let mut frame = data_frame(&mut random, next);
                    frame.truncate(random.usize(20..DATA_FRAME_LEN));
                    both.frame(&frame);
                }
                13 if random.u8(..20) == 0 => {
                    let sets = random.u64(2..60_000);
                    let frame = data_frame(&mut random, next + 32 * sets);
                    both.frame(&frame);
                }
                _ => {
                    let offset = *random.choice(&[0, 0, 0, 0, 1, 2, 3, 31, -1, -5]).unwrap();
                    both.frame(&data_frame(&mut random, next.saturating_add_signed(offset)));
                }
            }
        }
        bytes += both.read().len();
        both.command(fade10g::CMD_STOP, 0);
        while both.driver.feb.sets.ahead != 0 {
            both.frame(&data_frame(&mut random, both.driver.feb.sets.in_order));
        }
        // Most of them end as the board says then.
        let told = PHASES.get(case % (PHASES.len() + 1)).copied();
        for _ in 0..told.map_or(0, |_| random.usize(6..9)) {
            let packets = both.driver.feb.sets.in_order as u32 + u32::from(case % 4 == 0);
            let number = both.driver.feb.number.wrapping_add(u16::from(case % 7 == 0));
            both.frame(&state_frame(&mut random, told, number, packets));
            both.wait(100);
        }
        both.wait(700);
        bytes += both.read().len();
        endings[both.driver.feb.ending as usize] += 1;
        let (state, stats) = (both.driver.feb.state, both.driver.feb.stats);
        (complete, aborted) = (complete + u32::from(state == 2), aborted + u32::from(state == 3));
        (errors, full) = (errors + stats.protocol_errors, full + stats.no_space);
        if state == 2 && stats.packets > 40 {
            both.frame(&data_frame(&mut random, both.driver.feb.sets.in_order - 1));
            both.frame(&data_frame(&mut random, both.driver.feb.sets.in_order));
        }
        // And again.
        both.command(fade10g::CMD_START, 0);
        both.wait(60);
        both.frame(&data_frame(&mut random, 0));
    }
    assert!(shown > 5 && again > 2, "{shown} {again}");
    assert!(bytes > 1_000_000 && errors > 20 && full > 50, "{bytes} {errors} {full}");
    assert!(complete > 10 && aborted > 10 && complete + aborted == 40, "{complete} {aborted}");
    assert!(endings.iter().all(|n| *n > 0), "each way to end was met: {endings:?}");
}
