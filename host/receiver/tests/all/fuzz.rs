//! Random and slightly wrong frames for parser and engine: no panic, each frame is counted, no wrong word.
//! FADELINK_SEED reproduces a run, FADELINK_FUZZ sets the number of frames.

use crate::model;
use std::time::Duration;

use fadelink_receiver::counters::LinkCounters;
use fadelink_receiver::engine::{Command, Engine, FebConfig};
use fadelink_receiver::numbers::Numbers;
use fadelink_receiver::shared::Shared;
use fadelink_wire::fade10g::{self, Data, Identity, Request, Response, DATA_FRAME_LEN, PACKET_BYTES};
use fadelink_wire::MacAddr;

const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

fn payload(packet: u32) -> Vec<u8> {
    packet.to_le_bytes().repeat(PACKET_BYTES / 4)
}

fn data_frame(sequence: u16, packet: u32) -> [u8; DATA_FRAME_LEN] {
    let payload = payload(packet);
    let mut frame = [0; DATA_FRAME_LEN];
    let data = Data { sequence, packet, delay: 0, response: None, last: None, payload: &payload };
    data.write(PC, FEB, &mut frame).unwrap();
    frame
}

#[test]
fn no_frame_stops_the_engine_reaches_the_data_or_goes_uncounted() {
    let mut random = fastrand::Rng::with_seed(setting("FADELINK_SEED", 1));
    let link = std::sync::Arc::new(LinkCounters::default());
    let mut engine = Engine::new(PC, false, link.clone());
    let (shared, mut reader) = Shared::new(64).unwrap();
    engine.open(
        FEB,
        FebConfig { ring_packets: 64, window: 32, ..model::FADELINK },
        true,
        shared.clone(),
        Numbers::private(None),
    );
    let mut sent: Vec<Vec<u8>> = Vec::new();
    let mut send = |frame: &[u8]| sent.push(frame.to_vec());
    let reply = Box::new(|_| ());
    let start = Command { code: fade10g::CMD_START, argument: 0, timeout: Duration::from_secs(1), retries: 0, reply };
    engine.command(FEB, start, Duration::ZERO, &mut send);
    let identity = Identity {
        window: 32,
        running: false,
        stopping: false,
        block_acks: true,
        csn: None,
        transmission: 0,
        resets: None,
        checksum: true,
        same_words: true,
    };
    for (code, value) in [(fade10g::CMD_IDENTIFY, identity.to_value()), (fade10g::CMD_START, 0)] {
        let Request::Command { csn, .. } = fade10g::parse_request(&sent.pop().unwrap()).unwrap().1 else { panic!() };
        let response = Response { code, csn, value }.to_frame(PC, FEB);
        engine.frame(&response, Duration::ZERO, &mut |frame: &[u8]| sent.push(frame.to_vec()));
    }
    let mut send = |_: &[u8]| ();

    let mut now = Duration::ZERO;
    let mut next = 0u32;
    let mut counted = 2;
    for i in 0..setting("FADELINK_FUZZ", 100_000) {
        now += Duration::from_micros(random.u64(0..1000));
        let sequence = i as u16;
        let frame = match random.u8(0..8) {
            0 => (0..random.usize(0..200)).map(|_| random.u8(..)).collect(),
            1 => {
                let mut frame = vec![0; random.usize(0..9019)];
                frame.iter_mut().take(60).for_each(|b| *b = random.u8(..));
                frame
            }
            // Headers that get ever further.
            2 | 3 => {
                let good = data_frame(sequence, next.wrapping_add(random.u32(0..40)));
                let keep = random.usize(0..48);
                let mut frame = good[..random.usize(keep..=DATA_FRAME_LEN)].to_vec();
                frame.iter_mut().skip(keep).take(48 - keep).for_each(|b| *b = random.u8(..));
                // A last packet would end the run, and other numbers inside the window would be data.
                if frame.len() == DATA_FRAME_LEN && keep > 16 {
                    frame[17] ^= 0x10;
                }
                frame
            }
            // Behind and beyond the window.
            4 => data_frame(sequence, next.wrapping_add(random.u32(32..1 << 31))).to_vec(),
            5 => data_frame(sequence, next.wrapping_sub(random.u32(1..1 << 31))).to_vec(),
            6 => {
                let response = Response { code: random.u16(1..), csn: random.u16(..), value: random.u64(..) };
                response.to_frame(if random.bool() { PC } else { FEB }, FEB).to_vec()
            }
            _ => {
                next += 1;
                data_frame(sequence, next - 1).to_vec()
            }
        };
        engine.frame(&frame, now, &mut send);
        engine.confirm(&mut send);
        engine.poll(now, &mut send);
        counted += 1;

        let (feb, link) = (shared.counters.read(), link.read());
        let dropped_or_taken = link.other_destination
            + link.truncated
            + link.wrong_ethertype
            + link.wrong_version
            + link.wrong_type
            + link.unknown_feb
            + feb.packets
            + feb.duplicates
            + feb.no_space
            + feb.not_started
            + feb.protocol_errors
            + feb.wrong_length
            + feb.wrong_valid_words
            + feb.responses
            + feb.unexpected_responses;
        assert_eq!((link.frames, dropped_or_taken), (counted, counted), "frame {i}: {frame:02x?}");
        assert_eq!(
            feb.packets,
            u64::from(next),
            "frame {i} was taken for data: {:02x?}",
            &frame[..48.min(frame.len())]
        );

        let available = reader.available();
        let first = next - (available.len() / PACKET_BYTES) as u32;
        for (packet, bytes) in (first..).zip(available.chunks(PACKET_BYTES)) {
            assert!(bytes == payload(packet), "packet {packet} has a wrong word");
        }
        let bytes = available.len();
        reader.release(bytes);
    }
    assert!(next > 1000);
}
