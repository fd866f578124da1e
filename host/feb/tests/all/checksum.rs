//! Boards of both protocols tell the CRC of all words at the end, as the RTL does: of FADE-10G if START asks for it.

use std::time::Duration;

use fadelink_feb::{BoardSettings, Fade10gBoard, Fade1Board, Quirk, Quirks, Status, User};
use fadelink_wire::fade10g::{self, FebFrame, Identity};
use fadelink_wire::{fade1, Checksum, MacAddr};

const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);

/// Has so many words, and gives three at a time.
struct Words(Vec<u8>, usize);

impl Words {
    fn new(words: usize) -> Words {
        Words((0..8 * words).map(|i| ((i * 7) >> 2) as u8).collect(), 0)
    }
}

impl User for Words {
    fn begin(&mut self) {
        self.1 = 0;
    }
    fn fill(&mut self, out: &mut [u8]) -> usize {
        let bytes = out.len().min(24).min(self.0.len() - self.1);
        out[..bytes].copy_from_slice(&self.0[self.1..][..bytes]);
        self.1 += bytes;
        bytes
    }
    fn command(&mut self, _: u16, _: u32, _: &Status) -> u64 {
        0
    }
}

fn settings(quirks: &[Quirk]) -> BoardSettings {
    BoardSettings {
        quirks: quirks.iter().fold(Quirks::default(), |all, quirk| all.with(*quirk)),
        ..BoardSettings::default()
    }
}

fn command(feb: &mut Fade10gBoard<Words>, code: u16, csn: u16, argument: u32) -> u64 {
    feb.take(&fade10g::Request::Command { code, csn, argument }.to_frame(FEB, PC), Duration::ZERO);
    let (_, FebFrame::Response(response)) = fade10g::parse_feb(feb.give(Duration::ZERO).unwrap()).unwrap() else {
        panic!()
    };
    response.unwrap().value
}

/// What the last packet of a transmission tells, and the bytes of all.
fn fade10g(feb: &mut Fade10gBoard<Words>, argument: u32) -> (Option<u32>, Vec<u8>) {
    let csn = 10 + 2 * feb.status().sent as u16;
    // In the answer's frame or in a data frame: both come.
    feb.take(&fade10g::Request::Command { code: fade10g::CMD_START, csn, argument }.to_frame(FEB, PC), Duration::ZERO);
    let (mut all, mut now) = (Vec::new(), Duration::ZERO);
    for round in 0..100_000u32 {
        now += Duration::from_micros(10);
        if round == 5000 {
            let stop = fade10g::Request::Command { code: fade10g::CMD_STOP, csn: csn + 1, argument: 0 };
            feb.take(&stop.to_frame(FEB, PC), now);
        }
        let Some(frame) = feb.give(now).map(<[u8]>::to_vec) else { continue };
        let (_, FebFrame::Data(data)) = fade10g::parse_feb(&frame).unwrap() else { continue };
        let bytes = data.last.map_or(fade10g::PACKET_BYTES, |words| 8 * words as usize);
        all.extend(&data.payload[..bytes]);
        let fade10g::Data { sequence, packet, delay, .. } = data;
        let ack = fade10g::Request::Ack { negative: false, sequence, packet, delay, stored: None };
        feb.take(&ack.to_frame(FEB, PC), now);
        if data.last.is_some() {
            return (data.checksum(), all);
        }
    }
    panic!("no end")
}

#[test]
fn fade10g_tells_it_if_it_is_asked() {
    for words in [0, 1, 1023, 1024, 5000] {
        let mut feb = Fade10gBoard::new(FEB, settings(&[]), Words::new(words));
        let identity = Identity::from_value(command(&mut feb, fade10g::CMD_IDENTIFY, 1, 0)).unwrap();
        assert!(identity.checksum);
        for argument in [1, 0, !fade10g::START_PERMIT] {
            let (told, all) = fade10g(&mut feb, argument);
            assert_eq!(all, Words::new(words).0);
            assert_eq!(told, (argument & 1 != 0).then(|| crc32fast::hash(&all)), "{words} {argument}");
        }
    }
}

#[test]
fn boards_without_it_say_so() {
    let mut feb = Fade10gBoard::new(FEB, settings(&[Quirk::NoChecksum]), Words::new(100));
    let identity = Identity::from_value(command(&mut feb, fade10g::CMD_IDENTIFY, 1, 0)).unwrap();
    assert!(!identity.checksum);
    assert_eq!(fade10g(&mut feb, 1), (None, Words::new(100).0));
    assert_eq!(fade1(&[Quirk::NoChecksum], 100).0, None);
}

#[test]
fn a_bad_memory_changes_one_bit_behind_it() {
    for words in [100, 3000] {
        let sent = Words::new(words).0;
        let changed = |all: &[u8]| all.iter().zip(&sent).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
        let mut feb = Fade10gBoard::new(FEB, settings(&[Quirk::BadMemory]), Words::new(words));
        let (told, all) = fade10g(&mut feb, 1);
        assert_eq!((told, changed(&all)), (Some(crc32fast::hash(&sent)), 1));
        let (told, all) = fade1(&[Quirk::BadMemory], words);
        assert_eq!((told.map(|told| told.crc), changed(&all)), (Some(crc32fast::hash(&sent)), 1));
    }
}

/// What is told at the end of a transmission of FADE v1, and the bytes of all, filler too.
fn fade1(quirks: &[Quirk], words: usize) -> (Option<Checksum>, Vec<u8>) {
    let mut feb = Fade1Board::new(FEB, settings(quirks), Words::new(words));
    feb.take(&fade1::Request::Start { transmission: 7, permit: None }.to_frame(FEB, PC), Duration::ZERO);
    let (mut all, mut now) = (Vec::new(), Duration::ZERO);
    for round in 0..100_000u32 {
        now += Duration::from_micros(10);
        if round % 5000 == 4999 {
            feb.take(&fade1::Request::Stop.to_frame(FEB, PC), now);
        }
        let Some(frame) = feb.give(now).map(<[u8]>::to_vec) else { continue };
        match fade1::parse_feb(&frame).unwrap().1 {
            fade1::FebFrame::Data(data) => {
                all.extend(data.payload);
                let ack = fade1::Request::Ack { set: data.set, packet: data.packet, stored: None };
                feb.take(&ack.to_frame(FEB, PC), now);
            }
            fade1::FebFrame::State(state) if state.phase == fade1::Phase::Ended => return (state.checksum, all),
            fade1::FebFrame::State(state) => assert_eq!(state.checksum, None, "before the end"),
        }
    }
    panic!("no end")
}

#[test]
fn fade1_tells_it_of_the_words_before_the_filler() {
    for words in [0, 1, 127, 128, 129, 3000] {
        let (told, all) = fade1(&[], words);
        let told = told.unwrap();
        let valid = all.len() - 8 * usize::from(told.filler_words());
        assert_eq!((usize::from(told.last_words), valid), (words % 128, 8 * words));
        assert_eq!((&all[..valid], told.crc), (&Words::new(words).0[..], crc32fast::hash(&all[..valid])));
    }
}
