//! Boards of both protocols count the RESETs since START, and tell who sent the last one, as the RTL does.

use std::time::Duration;

use fadelink_feb::{BoardSettings, Fade10gBoard, Fade1Board, Quirk, Quirks, Status, User};
use fadelink_wire::fade10g::{self, FebFrame, Identity, ResetBy, Response};
use fadelink_wire::{fade1, MacAddr, Resets};

const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);
const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const OTHER: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf1]);

struct Silent;

impl User for Silent {
    fn begin(&mut self) {}
    fn fill(&mut self, _: &mut [u8]) -> usize {
        0
    }
    fn command(&mut self, _: u16, _: u32, _: &Status) -> u64 {
        0
    }
}

/// RESETs by these, after START number 7; and what is told then.
const CASES: [(&[MacAddr], Resets); 3] = [
    (&[], Resets { count: 0, by: None }),
    (&[OTHER], Resets { count: 1, by: Some(OTHER) }),
    (&[OTHER; 300], Resets { count: 255, by: Some(OTHER) }),
];

fn fade10g(feb: &mut Fade10gBoard<Silent>, from: MacAddr, code: u16) -> Option<Response> {
    let request = fade10g::Request::Command { code, csn: 7, argument: 0 };
    feb.take(&request.to_frame(FEB, from), Duration::ZERO);
    let (header, FebFrame::Response(response)) = fade10g::parse_feb(feb.give(Duration::ZERO)?).unwrap() else {
        panic!()
    };
    assert_eq!(header.dst, from);
    response
}

#[test]
fn fade10g_counts_them() {
    for (senders, expected) in CASES {
        let mut feb = Fade10gBoard::new(FEB, BoardSettings::default(), Silent);
        assert_eq!(fade10g(&mut feb, PC, fade10g::CMD_RESET), None);
        fade10g(&mut feb, PC, fade10g::CMD_START).unwrap();
        for sender in senders {
            assert_eq!(fade10g(&mut feb, *sender, fade10g::CMD_RESET), None);
        }
        let identity = fade10g(&mut feb, OTHER, fade10g::CMD_IDENTIFY).unwrap();
        let identity = Identity::from_value(identity.value).unwrap();
        assert_eq!((identity.resets, identity.transmission), (Some(expected.count), 7));
        let by = fade10g(&mut feb, OTHER, fade10g::CMD_RESET_BY).unwrap();
        assert_eq!(ResetBy::from_value(by.value), ResetBy { transmission: 7, by: expected.by });
    }
}

#[test]
fn fade1_counts_them() {
    for (senders, expected) in CASES {
        let mut feb = Fade1Board::new(FEB, BoardSettings::default(), Silent);
        let mut take = |request: fade1::Request, from| {
            feb.take(&request.to_frame(FEB, from), Duration::ZERO);
            let (_, fade1::FebFrame::State(state)) = fade1::parse_feb(feb.give(Duration::ZERO)?).unwrap() else {
                panic!()
            };
            state.resets
        };
        assert_eq!(take(fade1::Request::Reset, PC), None);
        assert_eq!(take(fade1::Request::Start { transmission: 7, permit: None }, PC), Some(Resets::default()));
        for sender in senders {
            assert_eq!(take(fade1::Request::Reset, *sender), None);
        }
        assert_eq!(take(fade1::Request::Stop, PC), Some(expected));
    }
}

/// The repetition of a START whose transmission was reset begins a new one, of the same number: the RESET stays known.
#[test]
fn start_of_the_same_number_keeps_them() {
    let once = Resets { count: 1, by: Some(OTHER) };
    for (number, expected) in [(7, once), (8, Resets::default())] {
        let mut feb = Fade10gBoard::new(FEB, BoardSettings::default(), Silent);
        let command = |code, csn| fade10g::Request::Command { code, csn, argument: 0 }.to_frame(FEB, PC);
        feb.take(&command(fade10g::CMD_START, 7), Duration::ZERO);
        fade10g(&mut feb, OTHER, fade10g::CMD_RESET);
        feb.take(&command(fade10g::CMD_START, number), Duration::ZERO);
        while feb.give(Duration::ZERO).is_some() {}
        let identity = fade10g(&mut feb, OTHER, fade10g::CMD_IDENTIFY).unwrap();
        let identity = Identity::from_value(identity.value).unwrap();
        assert_eq!((identity.running, identity.transmission), (true, number));
        assert_eq!(identity.resets, Some(expected.count));
    }
    for (transmission, expected) in [(7, once), (8, Resets::default())] {
        let mut feb = Fade1Board::new(FEB, BoardSettings::default(), Silent);
        let mut take = |request: fade1::Request, from| {
            feb.take(&request.to_frame(FEB, from), Duration::ZERO);
            let (_, fade1::FebFrame::State(state)) = fade1::parse_feb(feb.give(Duration::ZERO)?).unwrap() else {
                panic!()
            };
            Some((state.phase, state.transmission, state.resets))
        };
        take(fade1::Request::Start { transmission: 7, permit: None }, PC);
        assert_eq!(take(fade1::Request::Reset, OTHER), None);
        let told = take(fade1::Request::Start { transmission, permit: None }, PC);
        assert_eq!(told, Some((fade1::Phase::Running, transmission, Some(expected))));
    }
}

#[test]
fn earlier_boards_do_not() {
    let settings = BoardSettings { quirks: Quirks::default().with(Quirk::NoResetCount), ..BoardSettings::default() };
    let mut feb = Fade10gBoard::new(FEB, settings, Silent);
    let identity = fade10g(&mut feb, OTHER, fade10g::CMD_IDENTIFY).unwrap();
    assert_eq!(Identity::from_value(identity.value).unwrap().resets, None);
    assert_eq!(fade10g(&mut feb, PC, fade10g::CMD_RESET_BY), None);
    assert_eq!(feb.status().wrong_code, 1);
}
