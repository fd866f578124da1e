//! How a transmission of FADE v1 ends: what STOP, silence and the FEB's answers prove, frame by frame in simulated time.

use std::time::Duration;

use crate::model::fade1::{config, data, Bench, MS};
use fadelink_receiver::engine::{Actions, CommandError, FebConfig};
use fadelink_receiver::shared::{Ending, Phase};
use fadelink_wire::fade1::{self, Request};
use fadelink_wire::{fade10g, Firmware, MacAddr, Protocol, Resets};

#[test]
fn stop_is_repeated_until_there_is_silence() {
    let mut bench = Bench::started();
    bench.frame(&data(0, 2));
    let outcome = bench.command(fade10g::CMD_STOP);
    assert_eq!(outcome.try_recv().unwrap(), Ok(0));
    for _ in 0..30 {
        bench.wait(100 * MS);
    }
    assert_eq!(bench.reader.phase(), Phase::Running, "a packet is missing");
    bench.frame(&data(0, 1));
    bench.requests();
    for _ in 0..4 {
        bench.wait(100 * MS);
    }
    assert_eq!((bench.requests().0.len(), bench.reader.phase()), (4, Phase::Running));
    bench.frame(&data(0, 1));
    for _ in 0..5 {
        bench.wait(100 * MS);
    }
    assert_eq!(bench.reader.phase(), Phase::Running, "silence begins anew");
    bench.wait(100 * MS);
    assert_eq!((bench.reader.phase(), bench.reader.tail()), (Phase::Complete, 3 * 1024));
    assert_eq!(bench.reader.ending(), Ending::Silence, "nothing tells that it had no more");
    assert!(bench.engine.next_deadline().is_none());
    bench.requests();
    bench.frame(&data(0, 2));
    assert_eq!(bench.requests().0, [Request::Ack { set: 0, packet: 2, stored: None }], "its ACK was lost");
}

/// One of three packets, the second, is missing: STOP.
fn stopped_with_a_gap() -> Bench {
    let mut bench = Bench::started();
    bench.frame(&data(0, 2));
    bench.command(fade10g::CMD_STOP);
    bench.wait(Duration::ZERO);
    bench
}

#[test]
fn a_board_that_answers_stop_proves_the_end() {
    let mut bench = stopped_with_a_gap();
    for _ in 0..20 {
        bench.state(fade1::Phase::Stopping, 3);
        bench.wait(100 * MS);
    }
    bench.frame(&data(0, 1));
    for _ in 0..20 {
        bench.wait(100 * MS);
        bench.state(fade1::Phase::Stopping, 3);
    }
    assert_eq!(bench.reader.phase(), Phase::Running, "it still waits for a confirmation");
    bench.state(fade1::Phase::Ended, 3);
    assert_eq!((bench.reader.phase(), bench.reader.ending()), (Phase::Complete, Ending::Confirmed));
    assert!(bench.engine.next_deadline().is_none(), "no more STOPs");
    let counters = bench.reader.counters.read();
    assert_eq!((counters.responses, counters.unexpected_responses), (41, 0));
    // Late ones harm nothing.
    bench.state(fade1::Phase::Ended, 3);
    bench.state(fade1::Phase::Reset, 3);
    assert_eq!((bench.reader.phase(), bench.reader.counters.read().protocol_errors), (Phase::Complete, 0));
}

#[test]
fn a_board_that_tells_otherwise_aborts() {
    for (phase, packets, ending) in [
        (fade1::Phase::None, 0, Ending::SwitchedOff),
        (fade1::Phase::Reset, 3, Ending::Reset),
        (fade1::Phase::Ended, 4, Ending::OtherNumber),
        (fade1::Phase::Ended, 3 + (1 << 31), Ending::OtherNumber),
    ] {
        for whole in [false, true] {
            let mut bench = stopped_with_a_gap();
            if whole {
                bench.frame(&data(0, 1));
            }
            // STOPs since the last data.
            for _ in 0..if whole { 6 } else { 5 } {
                assert_eq!(bench.reader.phase(), Phase::Running, "{phase:?}: data may still be under way");
                bench.state(phase, packets);
                bench.wait(100 * MS);
            }
            assert_eq!((bench.reader.phase(), bench.reader.ending()), (Phase::Aborted, ending), "{phase:?}");
            assert_eq!(bench.reader.tail(), if whole { 3 * 1024 } else { 1024 });
        }
    }
}

#[test]
fn what_a_board_told_before_its_data_does_not_count() {
    let mut bench = stopped_with_a_gap();
    for _ in 0..4 {
        bench.state(fade1::Phase::Reset, 3);
        bench.wait(100 * MS);
    }
    bench.frame(&data(0, 1));
    for _ in 0..5 {
        bench.wait(100 * MS);
    }
    assert_eq!(bench.reader.phase(), Phase::Running, "silence begins anew");
    bench.wait(100 * MS);
    assert_eq!((bench.reader.phase(), bench.reader.ending()), (Phase::Complete, Ending::Silence));
}

#[test]
fn another_transmission_is_no_proof() {
    let mut bench = stopped_with_a_gap();
    bench.frame(&data(0, 1));
    for phase in [fade1::Phase::Running, fade1::Phase::Ended, fade1::Phase::Stopping, fade1::Phase::Reset] {
        bench.state_of(bench.transmission.wrapping_add(1), phase, 3);
    }
    for _ in 0..6 {
        assert_eq!(bench.reader.phase(), Phase::Running);
        bench.wait(100 * MS);
    }
    assert_eq!((bench.reader.phase(), bench.reader.ending()), (Phase::Aborted, Ending::OtherTransmission));
}

/// Of this transmission, while it runs here; a board that does not count them says nothing.
#[test]
fn resets_that_the_board_has_counted_are_kept() {
    let mut bench = stopped_with_a_gap();
    let resets = |count, last| Some(Resets { count, by: (count > 0).then_some(MacAddr([2, 0, 0, 0, 0, last])) });
    let number = bench.transmission;
    assert_eq!(bench.reader.told.number(), Some(number));
    bench.state_with(number, fade1::Phase::Reset, None);
    bench.state_with(number.wrapping_add(1), fade1::Phase::Reset, resets(9, 9));
    assert_eq!(bench.reader.told.resets(), None);
    bench.state_with(number, fade1::Phase::Running, resets(0, 0));
    assert_eq!(bench.reader.told.resets(), resets(0, 0));
    bench.frame(&data(0, 1));
    bench.state_with(number, fade1::Phase::Ended, resets(2, 7));
    assert_eq!((bench.reader.phase(), bench.reader.told.resets()), (Phase::Complete, resets(2, 7)));
    bench.state_with(number, fade1::Phase::Ended, resets(3, 8));
    assert_eq!(bench.reader.told.resets(), resets(2, 7), "behind the end");
}

#[test]
fn an_end_that_nobody_asked_for_is_evidence() {
    let mut bench = Bench::started();
    for phase in [fade1::Phase::Stopping, fade1::Phase::Ended, fade1::Phase::Reset] {
        bench.state(phase, 1);
    }
    // These say nothing against it: the first question was answered late, or another program asks.
    bench.state(fade1::Phase::None, 0);
    bench.state(fade1::Phase::Running, 1);
    bench.state_of(bench.transmission.wrapping_add(1), fade1::Phase::Ended, 1);
    let counters = bench.reader.counters.read();
    assert_eq!((counters.protocol_errors, counters.unexpected_responses), (3, 3));
    assert_eq!((bench.reader.phase(), bench.requests().0), (Phase::Running, vec![]));
}

#[test]
fn a_board_without_data_ends_without_data() {
    let mut bench = Bench::new(Some(Protocol::Fade1));
    bench.command(fade10g::CMD_START);
    bench.reset_rounds();
    bench.requests();
    bench.command(fade10g::CMD_STOP);
    bench.state(fade1::Phase::Ended, 0);
    assert_eq!((bench.reader.phase(), bench.reader.ending()), (Phase::Complete, Ending::Confirmed));
    assert_eq!(bench.reader.tail(), 0);
}

#[test]
fn a_board_that_is_asked_while_it_runs_tells_how_its_transmission_stands() {
    for (phase, packets, ending) in [
        (fade1::Phase::Running, 1, Ending::Unknown),
        (fade1::Phase::Stopping, 2, Ending::Unknown),
        (fade1::Phase::None, 0, Ending::SwitchedOff),
        (fade1::Phase::Reset, 1, Ending::Reset),
        (fade1::Phase::Ended, 1, Ending::Confirmed),
        (fade1::Phase::Ended, 2, Ending::OtherNumber),
    ] {
        let mut bench = Bench::started();
        let outcome = bench.command(fade10g::CMD_IDENTIFY);
        bench.wait(10 * MS);
        assert_eq!(bench.requests(), (vec![], 2), "the question, and again");
        bench.state(phase, packets);
        assert_eq!(outcome.try_recv().unwrap(), Ok(ending as u64), "{phase:?}");
        assert_eq!(bench.reader.phase(), Phase::Running, "{phase:?}: it is the user who ends it");
        assert_eq!(bench.reader.counters.read().unexpected_responses, 0, "{phase:?}");
        bench.wait(100 * MS);
        assert_eq!(bench.requests(), (vec![], 0), "{phase:?}: no more questions");
    }
    let mut bench = Bench::started();
    let outcome = bench.command(fade10g::CMD_IDENTIFY);
    bench.state_of(bench.transmission + 1, fade1::Phase::Running, 0);
    assert_eq!(outcome.try_recv().unwrap(), Ok(Ending::OtherTransmission as u64));
}

#[test]
fn a_board_that_does_not_answer_a_question_is_told() {
    let mut bench = Bench::started();
    let outcome = bench.command(fade10g::CMD_IDENTIFY);
    for _ in 0..6 {
        assert!(outcome.try_recv().is_err());
        bench.wait(10 * MS);
    }
    let error = CommandError::Timeout { code: fade10g::CMD_IDENTIFY, attempts: 6 };
    assert_eq!(outcome.try_recv().unwrap(), Err(error));
    assert_eq!(bench.reader.phase(), Phase::Running);
}

#[test]
fn published_boards_of_fade_v1_are_not_asked() {
    let mut bench =
        Bench::started_with(FebConfig { firmware: Some(Firmware::PublishedV1), ..config(Some(Protocol::Fade1)) });
    let outcome = bench.command(fade10g::CMD_IDENTIFY);
    assert_eq!(outcome.try_recv().unwrap(), Err(CommandError::NoCommands(fade10g::CMD_IDENTIFY)));
    assert_eq!(bench.requests(), (vec![], 0));
}

/// An interface that is down.
struct Unplugged<'a>(&'a mut Vec<Vec<u8>>);

impl Actions for Unplugged<'_> {
    fn send(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }

    fn is_connected(&mut self) -> bool {
        false
    }
}

#[test]
fn silence_of_an_interface_that_is_down_is_no_end() {
    let mut bench = Bench::started();
    bench.command(fade10g::CMD_STOP);
    for _ in 0..3 {
        bench.wait(100 * MS);
    }
    for _ in 0..100 {
        bench.now += 100 * MS;
        bench.engine.poll(bench.now, &mut Unplugged(&mut bench.sent));
    }
    assert_eq!(bench.reader.phase(), Phase::Running);
    bench.requests();
    for _ in 0..5 {
        bench.wait(100 * MS);
        assert_eq!(
            (bench.requests().0, bench.reader.phase()),
            (vec![Request::Stop], Phase::Running),
            "they count anew"
        );
    }
    bench.wait(100 * MS);
    assert_eq!((bench.reader.phase(), bench.reader.ending()), (Phase::Complete, Ending::Silence));
}
