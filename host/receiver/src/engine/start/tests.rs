//! The steps of START.

use super::*;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: (Duration, u32) = (Duration::from_millis(100), 3);
const UNKNOWN: Known = Known { protocol: None, firmware: None };
const FADE1: Known = Known { protocol: Some(Protocol::Fade1), firmware: None };
const FADELINK: Known = Known { protocol: Some(Protocol::Fade10g), firmware: Some(Firmware::Fadelink) };
const RUNNING: Identity = Identity {
    window: 32,
    running: true,
    stopping: false,
    block_acks: true,
    csn: Some(7),
    transmission: 5,
    resets: Some(0),
    checksum: false,
    same_words: true,
};

fn command() -> Command {
    Command { code: fade10g::CMD_START, argument: 0, timeout: PATIENCE.0, retries: PATIENCE.1, reply: Box::new(drop) }
}

fn begin(known: Known, is_told: bool) -> Start {
    Start::new(Goal::Begin(command()), 9, (known, is_told), PATIENCE, Duration::ZERO)
}

fn resume(bytes: u64, number: Option<u16>, stopped: bool, protocol: Option<Protocol>) -> Start {
    let goal = Goal::Resume(Resumed { bytes, stopped, number, protocol }, command());
    Start::new(goal, 9, (UNKNOWN, false), PATIENCE, Duration::ZERO)
}

/// Takes steps, one for each event, at the time that each asks for. What was sent, and how it ended.
fn follow(mut start: Start, known: Known, events: &[Event]) -> (Vec<Send>, Option<Outcome>) {
    let mut sent = Vec::new();
    for event in events {
        let now = start.next;
        match start.step(*event, known, now, || 9) {
            Step::On(next, send) => {
                sent.extend(send);
                start = next;
            }
            Step::End(_, outcome) => return (sent, Some(outcome)),
        }
    }
    (sent, None)
}

fn send(code: u16) -> Send {
    match code {
        fade10g::CMD_START => Send::Start { csn: 9, permit: Permit::NONE },
        code => Send::Command { code, csn: 9 },
    }
}

/// START is obeyed with a permit: it is sent again with each that is given. One that is refused may have been obeyed before.
#[test]
fn start_shows_the_permit_that_it_was_given() {
    let (first, second) = (Permit::new(5), Permit::new(6));
    let gives = |permit: Permit| Event::Answered(permit.to_answer());
    let start = |permit| Send::Start { csn: 9, permit };
    let begun = Some(Outcome::Begun(Protocol::Fade10g, Which::New { number: 9, next_start: None }));
    let reset = [start(first), Send::Reset, start(Permit::NONE), start(second)];
    for (events, sent, begun_again) in [
        (vec![gives(first)], vec![start(first)], 0),
        (vec![gives(first), Event::Due], vec![start(first); 2], 0),
        (vec![gives(first), gives(second)], vec![start(first), start(second)], 1),
        (vec![gives(first), Event::Due, gives(second)], vec![start(first), start(first), start(second)], 1),
        // It may be this one that runs.
        (vec![gives(first), Event::Answered(2), Event::Due, gives(second)], reset.to_vec(), 1),
    ] {
        let mut now = Duration::ZERO;
        let mut under_way = begin(FADELINK, true);
        let mut all = Vec::new();
        let mut outcome = None;
        for event in [Event::Due].iter().chain(&events).chain(&[Event::Answered(0)]) {
            now = now.max(under_way.next);
            match under_way.step(*event, FADELINK, now, || 9) {
                Step::On(next, send) => {
                    all.extend(send);
                    under_way = next;
                }
                Step::End(ended, how) => {
                    (under_way, outcome) = (ended, Some(how));
                    break;
                }
            }
        }
        assert_eq!(all, [&[start(Permit::NONE)], &sent[..]].concat(), "{events:?}");
        assert_eq!((outcome, under_way.begun_again), (begun.clone(), begun_again), "{events:?}");
    }
    let for_ever = [&[Event::Due][..], &[gives(first); 20]].concat();
    let failed = follow(begin(FADELINK, true), FADELINK, &for_ever).1;
    assert_eq!(failed, Some(Outcome::Failed(CommandError::StillRunning(first.to_answer()))));
}

#[test]
fn a_feb_of_fadelink_is_asked_and_started() {
    let events = [Event::Due, Event::Identified(Some(RUNNING)), Event::Answered(2), Event::Due, Event::Answered(0)];
    let (sent, outcome) = follow(begin(UNKNOWN, false), FADELINK, &events);
    let start = send(fade10g::CMD_START);
    assert_eq!(sent, [send(fade10g::CMD_IDENTIFY), start, Send::Reset, start]);
    assert_eq!(outcome, Some(Outcome::Begun(Protocol::Fade10g, Which::New { number: 9, next_start: None })));
    let (sent, _) = follow(begin(FADELINK, true), FADELINK, &[Event::Due]);
    assert_eq!(sent, [start], "it has told just now");
}

#[test]
fn silence_after_each_reset_comes_before_start() {
    let data = Event::Data(Protocol::Fade1);
    let (sent, outcome) = follow(begin(FADE1, false), FADE1, &[Event::Due, Event::Due, data, Event::Due, Event::Due]);
    assert_eq!((sent, outcome), (vec![Send::Reset; 4], None), "data begins the rounds anew");
    let (sent, outcome) = follow(begin(FADE1, false), FADE1, &[Event::Due; 4]);
    assert_eq!(sent, [Send::Reset; 3]);
    assert!(matches!(outcome, Some(Outcome::Begun(Protocol::Fade1, Which::New { next_start: Some(_), .. }))));
    let noisy: Vec<_> = (0..400).map(|i| if i % 2 == 0 { Event::Due } else { data }).collect();
    assert_eq!(follow(begin(FADE1, false), FADE1, &noisy).1, Some(Outcome::Failed(CommandError::SendsOn)));
}

#[test]
fn only_the_transmission_of_its_number_goes_on() {
    let packet = fade10g::PACKET_BYTES as u64;
    let not_running = |ending| Outcome::Failed(CommandError::NotRunning(ending));
    let at_its_end = Outcome::Failed(CommandError::AtItsEnd);
    let goes_on = |protocol, bytes| {
        let resumed = Resumed { bytes, stopped: false, number: Some(5), protocol: Some(protocol) };
        Outcome::Begun(protocol, Which::Resumed(resumed))
    };
    let over = Identity { running: false, ..RUNNING };
    for (bytes, number, identity, expected) in [
        (packet, Some(5), RUNNING, goes_on(Protocol::Fade10g, packet)),
        (packet, None, RUNNING, goes_on(Protocol::Fade10g, packet)),
        (packet, Some(4), RUNNING, not_running(Ending::OtherTransmission)),
        (packet, Some(5), over, not_running(Ending::Unknown)),
        (packet, Some(5), Identity { resets: Some(1), ..over }, not_running(Ending::Reset)),
        (packet, Some(5), Identity { transmission: 0, ..over }, not_running(Ending::SwitchedOff)),
        (packet + 8, Some(5), over, at_its_end.clone()),
    ] {
        let events = [Event::Due, Event::Identified(Some(identity))];
        let found = follow(resume(bytes, number, false, Some(Protocol::Fade10g)), FADELINK, &events).1;
        assert_eq!(found, Some(expected), "{number:?} {identity:?}");
    }
    for (number, phase, packets, expected) in [
        (Some(5), fade1::Phase::Running, 9, goes_on(Protocol::Fade1, 8 * 1024)),
        (None, fade1::Phase::Stopping, 9, goes_on(Protocol::Fade1, 8 * 1024)),
        (Some(4), fade1::Phase::Running, 9, not_running(Ending::OtherTransmission)),
        (Some(4), fade1::Phase::None, 0, not_running(Ending::SwitchedOff)),
        (Some(5), fade1::Phase::Reset, 8, not_running(Ending::Reset)),
        (Some(5), fade1::Phase::Ended, 8, at_its_end.clone()),
        (Some(5), fade1::Phase::Ended, 9, not_running(Ending::OtherNumber)),
        (None, fade1::Phase::Ended, 8, not_running(Ending::Unknown)),
    ] {
        let events = [
            Event::Due,
            Event::Told(fade1::State { phase, transmission: 5, packets, resets: None, checksum: None, permit: None }),
        ];
        let found = follow(resume(8 * 1024, number, false, Some(Protocol::Fade1)), FADE1, &events).1;
        assert_eq!(found, Some(expected), "{number:?} {phase:?}");
    }
}

/// A board that was replaced by one with the other protocol, or frames of that protocol which are forged.
#[test]
fn a_transmission_goes_on_in_its_own_protocol_alone() {
    let bytes = 3 * 1024;
    let not_running = Some(Outcome::Failed(CommandError::NotRunning(Ending::Unknown)));
    let listening = |start: Start, events: &[Event]| {
        let asked = [Event::Due; IDENTIFY_ATTEMPTS as usize + 1];
        let events: Vec<_> = asked.into_iter().chain(events.iter().copied()).chain([Event::Due]).collect();
        follow(start, UNKNOWN, &events).1
    };
    let of_v1 = || resume(bytes, Some(5), false, Some(Protocol::Fade1));
    assert_eq!(listening(of_v1(), &[Event::Found(Protocol::Fade10g)]), not_running);
    let identified = [Event::Due, Event::Identified(Some(RUNNING)), Event::Found(Protocol::Fade10g), Event::Due];
    assert_eq!(follow(of_v1(), FADELINK, &identified).1, not_running);
    let of_10g = resume(fade10g::PACKET_BYTES as u64, None, false, Some(Protocol::Fade10g));
    assert_eq!(listening(of_10g, &[Event::Found(Protocol::Fade1)]), not_running);
    // Nothing tells what the data of an earlier version came by.
    assert_eq!(listening(resume(bytes, None, false, None), &[]), not_running);
    let at_its_end = Some(Outcome::Failed(CommandError::AtItsEnd));
    assert_eq!(listening(resume(bytes, None, false, Some(Protocol::Fade10g)), &[]), at_its_end);
}

/// A board that is switched on between IDENTIFY and START obeys START. RESET would end that, with the words it has taken.
#[test]
fn what_has_obeyed_start_is_not_reset() {
    let asked = [Event::Due; IDENTIFY_ATTEMPTS as usize + RESET_ROUNDS as usize + 1];
    let begins = |more: &[Event], known: Known| {
        let mut start = begin(UNKNOWN, false);
        let mut numbers = 20..;
        let mut sent = Vec::new();
        let events = asked.iter().chain(&[Event::Answered(0)]).map(|event| (*event, UNKNOWN));
        for (event, known) in events.chain(more.iter().map(|event| (*event, known))) {
            let now = start.next;
            match start.step(event, known, now, || numbers.next().unwrap_or_default()) {
                Step::On(next, send) => {
                    sent.extend(send);
                    start = next;
                }
                Step::End(start, outcome) => return (sent, Some(outcome), start.interrupted),
            }
        }
        (sent, None, start.interrupted)
    };
    let ours = Identity { transmission: 20, ..RUNNING };
    let begun = Outcome::Begun(Protocol::Fade10g, Which::New { number: 20, next_start: None });
    let data = Event::Data(Protocol::Fade10g);
    let lost = [Event::Due; IDENTIFY_ATTEMPTS as usize];
    let published = Known { protocol: Some(Protocol::Fade10g), firmware: Some(Firmware::Published10g) };
    for (events, known) in [
        (vec![Event::Identified(Some(ours))], FADELINK),
        (vec![data, Event::Identified(Some(ours))], FADELINK),
        (vec![Event::Identified(None)], published),
        ([&lost[..], &[Event::Identified(Some(ours))]].concat(), FADELINK),
    ] {
        let (sent, outcome, interrupted) = begins(&events, known);
        let start = sent.iter().position(|sent| matches!(sent, Send::Start { .. })).unwrap();
        assert!(!sent[start..].contains(&Send::Reset), "{events:?} {sent:?}");
        assert_eq!((outcome, interrupted), (Some(begun.clone()), false), "{events:?}");
    }
    // It runs another one, or none.
    for identity in [RUNNING, Identity { running: false, ..ours }] {
        let (sent, outcome, _) = begins(&[Event::Identified(Some(identity))], FADELINK);
        assert_eq!((sent.last(), outcome), (Some(&Send::Start { csn: 22, permit: Permit::NONE }), None));
    }
}

/// Whatever happened before, it ends when nothing more happens.
#[test]
fn it_always_ends() {
    for case in 0..20_000 {
        let mut random = fastrand::Rng::with_seed(case);
        let firmware = *random.choice(&[None, Some(Firmware::Fadelink), Some(Firmware::Published10g)]).unwrap();
        let protocol = *random.choice(&[None, Some(Protocol::Fade10g), Some(Protocol::Fade1)]).unwrap();
        let known = Known { protocol, firmware };
        let (is_told, stopped) = (random.bool(), random.bool());
        let mut start = match random.u8(..3) {
            0 => begin(known, is_told),
            1 => resume(random.u64(..4) * 4096, Some(random.u16(..3)).filter(|_| is_told), stopped, protocol),
            _ => Start::stop_again(9, PATIENCE, Duration::ZERO),
        };
        let (mut now, busy) = (Duration::ZERO, random.usize(..40));
        let is_over = (0..busy + 1000).any(|i| {
            let transmission = random.u16(..3);
            let phase = *random.choice(&[fade1::Phase::Running, fade1::Phase::Ended, fade1::Phase::None]).unwrap();
            let event = match if i < busy { random.u8(..7) } else { 0 } {
                1 => Event::Identified(random.bool().then_some(Identity { transmission, ..RUNNING })),
                2 => Event::Answered(random.u64(..9)),
                3 => Event::Told(fade1::State {
                    phase,
                    transmission,
                    packets: 4,
                    resets: None,
                    checksum: None,
                    permit: None,
                }),
                4 => Event::Data(*random.choice(&[Protocol::Fade10g, Protocol::Fade1]).unwrap()),
                5 => Event::Found(*random.choice(&[Protocol::Fade10g, Protocol::Fade1]).unwrap()),
                _ => Event::Due,
            };
            now = if matches!(event, Event::Due) { now.max(start.next) } else { now + MS };
            let placeholder = Start::stop_again(0, PATIENCE, now);
            match std::mem::replace(&mut start, placeholder).step(event, known, now, || 9) {
                Step::On(next, _) => start = next,
                Step::End(..) => return true,
            }
            false
        });
        assert!(is_over, "case {case}: it goes on for ever");
    }
}
