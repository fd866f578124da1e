//! A board obeys a START that shows a permit only with that of this moment, and once, in every order of what it is sent.

use std::time::Duration;

use fadelink_feb::{Board, BoardSettings, Quirk, Quirks, Status, User};
use fadelink_wire::fade10g::{self, FebFrame};
use fadelink_wire::{fade1, MacAddr, Permit, Protocol};

const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const COMPUTERS: [MacAddr; 2] = [MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]), MacAddr([2, 0xfa, 0xde, 0, 0, 0xf1])];

/// Counts its transmissions.
#[derive(Default)]
struct Source {
    begun: u32,
}

impl User for Source {
    fn begin(&mut self) {
        self.begun += 1;
    }
    fn fill(&mut self, _: &mut [u8]) -> usize {
        0
    }
    fn command(&mut self, _: u16, _: u32, _: &Status) -> u64 {
        0
    }
}

/// A board without words.
struct Silent(Board<Source>);

impl Silent {
    fn new(is_v1: bool, quirks: Quirks) -> Silent {
        let protocol = if is_v1 { Protocol::Fade1 } else { Protocol::Fade10g };
        let settings = BoardSettings { quirks, ..BoardSettings::default() };
        Silent(Board::new(protocol, FEB, settings, Source::default()))
    }

    /// The permit that is told, if any.
    fn take(&mut self, frame: &[u8]) -> Option<Permit> {
        let (mut told, is_v1) = (None, self.0.protocol() == Protocol::Fade1);
        self.0.take(frame, Duration::ZERO);
        while let Some(frame) = self.0.give(Duration::ZERO) {
            if let (false, Ok((_, FebFrame::Response(Some(response))))) = (is_v1, fade10g::parse_feb(frame)) {
                let is_start = response.code == fade10g::CMD_START;
                told = Permit::from_answer(response.value).filter(|_| is_start).or(told);
            }
            if let (true, Ok((_, fade1::FebFrame::State(state)))) = (is_v1, fade1::parse_feb(frame)) {
                told = state.permit.filter(|permit| !permit.is_none()).or(told);
            }
        }
        told
    }

    fn begun(&self) -> u32 {
        self.0.user().begun
    }

    fn start(&self, number: u16, permit: Option<Permit>, from: MacAddr) -> Vec<u8> {
        match self.0.protocol() {
            Protocol::Fade10g => {
                let argument = permit.map_or(0, Permit::to_argument);
                fade10g::Request::Command { code: fade10g::CMD_START, csn: number, argument }.to_frame(FEB, from)
            }
            Protocol::Fade1 => fade1::Request::Start { transmission: number, permit }.to_frame(FEB, from),
        }
        .to_vec()
    }

    fn other(&self, random: &mut fastrand::Rng, from: MacAddr) -> Vec<u8> {
        let codes = [fade10g::CMD_STOP, fade10g::CMD_RESET, fade10g::CMD_IDENTIFY, 0x100];
        let code = *random.choice(&codes).unwrap();
        match (self.0.protocol(), code) {
            (Protocol::Fade1, fade10g::CMD_STOP) => fade1::Request::Stop.to_frame(FEB, from),
            (Protocol::Fade1, fade10g::CMD_RESET) => fade1::Request::Reset.to_frame(FEB, from),
            _ => fade10g::Request::Command { code, csn: random.u16(1..4), argument: 0 }.to_frame(FEB, from),
        }
        .to_vec()
    }
}

#[test]
fn a_permit_begins_one_transmission() {
    let mut obeyed = [0; 2];
    for case in 0..4000 {
        let is_v1 = case % 2 == 1;
        let mut random = fastrand::Rng::with_seed(case);
        let mut board = Silent::new(is_v1, Quirks::default());
        // Each START that was sent, with the transmissions that it began; the permits that were told, as they are.
        let mut starts: Vec<(Vec<u8>, Permit, u32)> = Vec::new();
        let (mut permits, mut valid) = (vec![Permit::NONE], Permit::NONE);
        for _ in 0..60 {
            let from = *random.choice(&COMPUTERS).unwrap();
            let before = board.begun();
            match random.u8(..8) {
                // A new one; a number may come again.
                0 | 1 => {
                    let permit = if random.bool() { *random.choice(&permits).unwrap() } else { valid };
                    starts.push((board.start(random.u16(1..6), Some(permit), from), permit, 0));
                }
                2 => {
                    board = Silent::new(is_v1, Quirks::default());
                    valid = Permit::NONE;
                    continue;
                }
                3 => {
                    let frame = board.other(&mut random, from);
                    board.take(&frame);
                    assert_eq!(board.begun(), before);
                    // RESET uses it up, what else may be told is the same.
                    if matches!(frame[14..18], [0, 5, ..] | [1, 0, 0, 5]) {
                        valid = Permit::NONE;
                    }
                    continue;
                }
                _ => {}
            }
            // The one that was sent last, or a late copy of any.
            let at = if random.bool() { starts.len().checked_sub(1) } else { random.choice(0..starts.len()) };
            let Some((frame, permit, times)) = at.map(|at| &mut starts[at]) else { continue };
            let told = board.take(frame);
            if board.begun() > before {
                assert_eq!((*permit, permit.is_none()), (valid, false), "case {case}: not the permit of this moment");
                *times += 1;
                assert_eq!(*times, 1, "case {case}: the same START again");
                obeyed[usize::from(is_v1)] += 1;
                valid = Permit::NONE;
            } else if let Some(told) = told {
                assert!(valid.is_none() || told == valid, "case {case}: it stays until it is used up");
                if !permits.contains(&told) {
                    assert!(valid.is_none());
                }
                permits.push(told);
                valid = told;
            }
        }
    }
    assert!(obeyed.iter().all(|times| *times > 1000), "{obeyed:?}");
}

#[test]
fn without_the_mark_start_is_obeyed_as_before() {
    for is_v1 in [false, true] {
        let mut board = Silent::new(is_v1, Quirks::default());
        let (start, asks) = (board.start(7, None, COMPUTERS[0]), board.start(8, Some(Permit::NONE), COMPUTERS[0]));
        assert_eq!((board.take(&start), board.begun()), (None, 1));
        let mut earlier = Silent::new(is_v1, Quirks::default().with(Quirk::NoPermit));
        assert_eq!((earlier.take(&asks), earlier.begun()), (None, 1), "a board that gives none");
    }
}
