//! The engine with FEBs of FADE v1, frame by frame in simulated time. FADELINK_SEED reproduces a run.

use std::time::Duration;

use crate::model::fade1::{data, data_of, Bench, FEB, MS, START};
use crate::model::{word, Cable, Counter};
use fadelink_feb::quirks::{Quirk, Quirks};
use fadelink_feb::{BoardSettings, Fade1Board};
use fadelink_receiver::engine::CommandError;
use fadelink_receiver::shared::{Ending, Phase};
use fadelink_receiver::Kind;
use fadelink_wire::fade1::{self, Request, DATA_HEADER_LEN, PACKET_BYTES};
use fadelink_wire::{fade10g, Firmware, Protocol, WordOrder};

/// Passes the time in which the FEB is asked what it is, and does not answer.
fn not_identified(bench: &mut Bench) {
    for _ in 0..12 {
        let (of_v1, of_10g) = bench.requests();
        assert_eq!((of_v1.len(), of_10g), (0, 1), "IDENTIFY");
        bench.wait(10 * MS / 4);
    }
}

/// The last byte of the first word is compared of each FEB, all others of one that sends the same words again.
#[test]
fn a_packet_that_comes_again_with_other_words_is_told() {
    let same_words = (fade1::SAME_WORDS >> 24) as u8;
    for (flags, byte, told) in [(same_words, DATA_HEADER_LEN, 1), (same_words, 1047, 1), (0, 31, 1), (0, 32, 0)] {
        let mut bench = Bench::started();
        let mut frame = data(0, 1);
        frame[20] = frame[20] & !same_words | flags;
        bench.frame(&frame);
        bench.frame(&frame);
        frame[byte] ^= 1;
        bench.frame(&frame);
        let counters = bench.reader.counters.read();
        assert_eq!((counters.packets, counters.duplicates, counters.contradictions), (2, 2, told), "{byte}");
    }
}

#[test]
fn start_finds_out_what_the_feb_speaks() {
    let mut bench = Bench::new(None);
    let outcome = bench.command(fade10g::CMD_START);
    not_identified(&mut bench);
    assert_eq!(bench.requests(), (vec![Request::Reset; 3], 3), "it does not tell what it is: RESET of both");
    bench.frame(&data(5, 3));
    bench.wait(20 * MS);
    bench.reset_rounds();
    assert_eq!(bench.requests(), (vec![START], 1));
    bench.wait(10 * MS);
    assert_eq!(bench.requests(), (vec![START], 1), "and again");
    assert!(outcome.try_recv().is_err() && bench.reader.phase() == Phase::Idle);
    // Still the earlier one: its RESET was lost.
    bench.frame(&data(5, 4));
    assert_eq!(outcome.try_recv().unwrap(), Ok(0), "it speaks FADE v1");
    for _ in 0..2 {
        bench.wait(100 * MS);
        assert_eq!(bench.requests(), (vec![START], 0), "it is asked which one it runs");
        bench.state_of(77, fade1::Phase::Running, 5);
    }
    bench.wait(Duration::ZERO);
    bench.reset_rounds();
    assert_eq!(bench.requests(), (vec![START], 0));
    bench.frame(&data(1, 0));
    bench.frame(&data(0, 1));
    assert_eq!(bench.requests().0, [], "nothing is confirmed before the first packet has come");
    bench.frame(&data(0, 0));
    bench.frame(&data(1, 0));
    assert_eq!(
        bench.requests().0,
        [Request::Ack { set: 0, packet: 0, stored: None }, Request::Ack { set: 1, packet: 0, stored: None }]
    );
    let kind =
        Kind { protocol: Protocol::Fade1, firmware: Some(Firmware::Fadelink), word_order: Some(WordOrder::Little) };
    assert_eq!(bench.reader.kind(), Some(kind));
    let counters = bench.reader.counters.read();
    assert_eq!((bench.reader.tail(), counters.delay, counters.not_started), (1024, 7, 4));
    assert_eq!(counters.interrupted, 2, "START met an earlier transmission, and so did its repetition");
    assert_eq!(counters.begun_again, 1, "what it says may be older than START");
}

#[test]
fn a_fadelink_board_tells_what_it_speaks() {
    let mut bench = Bench::new(None);
    let outcome = bench.command(fade10g::CMD_START);
    assert_eq!(bench.requests(), (vec![], 1), "IDENTIFY");
    bench.state(fade1::Phase::None, 0);
    bench.state(fade1::Phase::None, 0);
    bench.reset_rounds();
    assert_eq!((bench.requests(), outcome.try_recv().unwrap()), ((vec![START], 0), Ok(0)));
    let counters = bench.reader.counters.read();
    assert_eq!((counters.responses, counters.unexpected_responses), (1, 1));
    let kind = bench.reader.kind().unwrap();
    assert_eq!((kind.protocol, kind.firmware), (Protocol::Fade1, Some(Firmware::Fadelink)));
    bench.frame(&data(0, 0));
    assert_eq!(bench.requests().0, [Request::Ack { set: 0, packet: 0, stored: None }]);
}

#[test]
fn a_published_board_is_known_by_its_first_packet_and_its_words_are_made_native() {
    let bench = Bench::started();
    assert_eq!(bench.reader.kind().unwrap().firmware, Some(Firmware::Fadelink));
    let mut bench = Bench::new(Some(Protocol::Fade1));
    bench.command(fade10g::CMD_START);
    bench.reset_rounds();
    let mut frame = data(0, 0);
    (frame[18], frame[19]) = (0, 0);
    frame[DATA_HEADER_LEN..DATA_HEADER_LEN + 8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    bench.frame(&frame);
    let kind = bench.reader.kind().unwrap();
    assert_eq!((kind.firmware, kind.word_order), (Some(Firmware::PublishedV1), Some(WordOrder::Big)));
    assert_eq!(bench.reader.available()[..8], [4, 3, 2, 1, 8, 7, 6, 5], "words of 32 bits");
    assert_eq!(bench.reader.counters.read().interrupted, 0, "a fresh board");
}

#[test]
fn a_first_packet_that_does_not_come_may_mean_an_earlier_transmission() {
    // Fadelink's core is asked meanwhile.
    for (retry, patience, asked) in [([0, 0], 100, 0), (fade1::RETRY_FADELINK.to_be_bytes(), 1000, 9)] {
        let mut bench = Bench::new(Some(Protocol::Fade1));
        bench.command(fade10g::CMD_START);
        bench.reset_rounds();
        bench.requests();
        for step in 0..patience / 5 {
            let mut frame = data(0, 21 + step as u8 % 10);
            (frame[18], frame[19]) = (frame[18] & 0xFC | retry[0], retry[1]);
            bench.frame(&frame);
            bench.wait(5 * MS - MS / 100);
        }
        assert_eq!(bench.requests(), (vec![START; asked], 0), "the first may have been lost");
        bench.wait(10 * MS);
        bench.reset_rounds();
        assert_eq!(bench.reader.counters.read().begun_again, 1);
        bench.frame(&data(0, 0));
        assert_eq!(bench.requests().0, [START, Request::Ack { set: 0, packet: 0, stored: None }]);
    }
}

/// Whatever else comes in its name: what it has taken since START is not discarded.
#[test]
fn a_board_that_says_that_it_runs_this_transmission_is_not_reset() {
    for ahead in [false, true] {
        let mut bench = Bench::new(Some(Protocol::Fade1));
        bench.command(fade10g::CMD_START);
        bench.reset_rounds();
        bench.requests();
        if ahead {
            bench.frame(&data(0, 3));
            bench.wait(100 * MS);
            assert_eq!(bench.requests(), (vec![START], 0));
        }
        // One of another transmission may be late.
        bench.state_of(77, fade1::Phase::Running, 5);
        bench.state(fade1::Phase::Running, 0);
        bench.wait(500 * MS);
        bench.frame(&data(0, 1));
        bench.wait(2000 * MS);
        bench.frame(&data(0, 0));
        let sent = bench.requests().0;
        assert!(!sent.contains(&Request::Reset) && sent.len() == 2, "{sent:?}");
        assert_eq!((bench.reader.tail(), bench.reader.counters.read().begun_again), (2048, 0));
    }
}

#[test]
fn a_silent_feb_is_an_error_where_it_is_not_known() {
    let mut bench = Bench::new(None);
    let outcome = bench.command(fade10g::CMD_START);
    not_identified(&mut bench);
    bench.reset_rounds();
    for _ in 0..30 {
        bench.wait(10 * MS);
    }
    let (requests, others) = bench.requests();
    assert_eq!((requests, others), (vec![START; 6], 6));
    let error = CommandError::Timeout { code: fade10g::CMD_START, attempts: 6 };
    assert_eq!(outcome.try_recv().unwrap(), Err(error));
}

#[test]
fn a_silent_feb_is_waited_for_where_it_is_known() {
    let mut bench = Bench::new(Some(Protocol::Fade1));
    let outcome = bench.command(fade10g::CMD_START);
    for _ in 0..220 {
        bench.wait(10 * MS);
    }
    assert_eq!((outcome.try_recv().unwrap(), bench.reader.phase()), (Ok(0), Phase::Running));
    let (requests, others) = bench.requests();
    assert_eq!((requests.iter().filter(|r| **r == START).count() > 15, others), (true, 0));
    // It runs an earlier transmission: RESET, and START again.
    bench.state_of(77, fade1::Phase::Running, 5);
    bench.state_of(77, fade1::Phase::Running, 5);
    bench.wait(Duration::ZERO);
    bench.reset_rounds();
    assert_eq!(bench.requests(), (vec![START], 0));
    // Nothing at all, even after STOP: perhaps nobody is there.
    bench.command(fade10g::CMD_STOP);
    for _ in 0..6 {
        bench.wait(100 * MS);
    }
    assert_eq!(bench.reader.phase(), Phase::Aborted);
    assert_eq!(bench.requests().0, [Request::Stop; 5]);
}

#[test]
fn each_rule_has_its_action_and_its_counter() {
    let mut bench = Bench::started();
    let ack = |set, packet| Request::Ack { set, packet, stored: None };
    bench.frame(&data(0, 0));
    assert_eq!(bench.requests().0, [ack(0, 0)], "known: confirmed again");
    bench.frame(&data(0, 2));
    assert_eq!((bench.requests().0, bench.reader.tail()), (vec![ack(0, 2)], 1024), "a gap");
    let mut retried = data(0, 1);
    retried[19] |= 3;
    bench.frame(&retried);
    assert_eq!((bench.requests().0, bench.reader.tail()), (vec![ack(0, 1)], 3 * 1024), "the retry number is unused");
    for number in 3..96u16 {
        bench.frame(&data(number / 32, number as u8 % 32));
    }
    bench.requests();
    bench.frame(&data(2, 31));
    assert_eq!(bench.requests().0, [ack(2, 31)], "the set before: its ACK was lost");
    assert_eq!(bench.reader.tail(), 96 * 1024);
    for number in 96..130u16 {
        bench.frame(&data(number / 32, number as u8 % 32));
    }
    let counters = bench.reader.counters.read();
    assert_eq!((counters.packets, counters.duplicates, counters.no_space), (128, 2, 2), "a ring of 128 KiB is full");
    let bytes = bench.reader.available().len();
    assert_eq!((bytes, bench.reader.available()[33 * 1024]), (128 * 1024, 1));
    bench.reader.release(1024);
    bench.requests();
    bench.frame(&data(4, 0));
    bench.frame(&data(4, 1));
    assert_eq!(bench.requests().0, [ack(4, 0)]);
    bench.frame(&data(4, 0)[..1000]);
    assert_eq!(bench.reader.counters.read().wrong_length, 1);
    let mut other = data(4, 1);
    other[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    bench.frame(&other);
    assert_eq!(bench.link.read().other_destination, 1);
}

#[test]
fn a_packet_of_another_set_is_reported_and_stops_the_feb() {
    for wrong in [data(2, 0), data(0xFFFF, 31), data(0, 33)] {
        let mut bench = Bench::started();
        bench.frame(&wrong);
        bench.wait(Duration::ZERO);
        assert_eq!(bench.requests().0, [Request::Stop]);
        assert_eq!(bench.reader.counters.read().protocol_errors, 1);
        bench.frame(&data(0, 1));
        assert_eq!(
            bench.requests().0,
            [Request::Ack { set: 0, packet: 1, stored: None }],
            "what it still has is taken"
        );
    }
}

#[test]
fn a_start_that_is_answered_is_not_repeated() {
    let mut bench = Bench::new(Some(Protocol::Fade1));
    bench.command(fade10g::CMD_START);
    bench.reset_rounds();
    assert_eq!(bench.requests().0, [START]);
    bench.state_of(bench.transmission.wrapping_add(1), fade1::Phase::Running, 0);
    bench.state(fade1::Phase::None, 0);
    bench.wait(100 * MS);
    let before = bench.transmission;
    assert_eq!((bench.requests().0, bench.transmission), (vec![START], before), "the same number");
    bench.state(fade1::Phase::Running, 0);
    for _ in 0..20 {
        bench.wait(100 * MS);
    }
    assert_eq!(bench.requests().0, [], "it would begin anew in a board that was reset meanwhile");
    bench.frame(&data(0, 0));
    assert_eq!(bench.requests().0, [Request::Ack { set: 0, packet: 0, stored: None }]);
}

#[test]
fn a_block_ack_tells_all_that_is_stored() {
    let mut bench = Bench::started();
    assert_eq!(bench.engine.window(), 0, "each is confirmed at once");
    let ack = |set, packet, stored| [Request::Ack { set, packet, stored: Some(stored) }];
    for (set, packet) in [(0, 1), (0, 2), (1, 0), (0, 4)] {
        bench.frame(&data_of(set, packet, true));
    }
    assert_eq!(bench.engine.window(), 32, "a set");
    assert_eq!(bench.requests().0, [], "more may come");
    bench.confirm();
    let of_first = 0b111 << 29 | 1 << 27;
    assert_eq!(bench.requests().0, ack(1, 0, of_first), "the newest, and what is stored before it");
    bench.confirm();
    assert_eq!(bench.requests().0, [], "nothing came");
    bench.frame(&data_of(0, 2, true));
    bench.confirm();
    assert_eq!(bench.requests().0, ack(0, 2, 0b11), "one whose ACK was lost");
    bench.frame(&data_of(1, 2, true));
    bench.frame(&data_of(1, 1, false));
    assert_eq!(bench.requests().0, [Request::Ack { set: 1, packet: 1, stored: None }], "to a board that takes none");
    bench.frame(&data_of(2, 0, true));
    bench.confirm();
    assert_eq!(bench.requests().0[..1], ack(1, 2, of_first << 2 | 0b11), "not of another set, which is an error");
    assert_eq!(bench.reader.counters.read().protocol_errors, 1);
    // To the end of a set, and on.
    for packet in (3..32).filter(|packet| *packet != 4) {
        bench.frame(&data_of(0, packet, true));
    }
    bench.frame(&data_of(2, 0, true));
    bench.confirm();
    let in_second = 0b111 << 29;
    assert_eq!(bench.requests().0, ack(2, 0, in_second | u64::from(u32::MAX) << 32));
}

#[test]
fn a_user_command_to_a_board_that_tells_its_state_is_refused_at_once() {
    for code in [0x0101, fade10g::CMD_IDENTIFY] {
        let mut bench = Bench::new(None);
        bench.state(fade1::Phase::Running, 3);
        let outcome = bench.command(code);
        assert_eq!(
            (bench.requests(), outcome.try_recv().is_err()),
            ((vec![], 1), true),
            "a state that was not asked for"
        );
        bench.state(fade1::Phase::Running, 3);
        assert_eq!(outcome.try_recv().unwrap(), Err(CommandError::NoCommands(code)));
        let counters = bench.reader.counters.read();
        assert_eq!((counters.responses, counters.unexpected_responses), (1, 1));
        let next = bench.command(0x0102);
        assert_eq!(next.try_recv().unwrap(), Err(CommandError::NoCommands(0x0102)), "it is known now");
        bench.wait(100 * MS);
        assert_eq!(bench.requests(), (vec![], 0));
    }
    // Where the user has said FADE-10G, a state proves nothing.
    let mut bench = Bench::new(Some(Protocol::Fade10g));
    let outcome = bench.command(0x0101);
    bench.state(fade1::Phase::None, 0);
    assert!(outcome.try_recv().is_err());
}

#[test]
fn user_commands_are_refused_and_strangers_are_told_to_stop() {
    let mut bench = Bench::started();
    let outcome = bench.command(0x0101);
    assert_eq!(outcome.try_recv().unwrap(), Err(CommandError::NoCommands(0x0101)));
    let mut stranger = data(3, 0);
    stranger[11] = 9;
    bench.frame(&stranger);
    bench.frame(&stranger);
    assert_eq!(bench.requests().0, [Request::Reset]);
    assert_eq!((bench.link.read().unknown_feb, bench.link.read().resets), (2, 1));
    let sent = &mut bench.sent;
    bench.engine.close(FEB, &mut |frame: &[u8]| sent.push(frame.to_vec()));
    assert_eq!(bench.requests(), (vec![Request::Reset; 3], 0));
    // Nobody has it now: data is a stranger's.
    bench.now += 100 * MS;
    bench.frame(&data(0, 5));
    assert_eq!(bench.requests().0, [Request::Reset]);
}

/// A whole transmission over a cable that loses, repeats and reorders, both ways.
#[test]
fn every_word_arrives_over_a_bad_cable() {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let block_acks = [Quirks::default(), Quirks::default().with(Quirk::NoBlockAcks)];
    let cases = [0.0, 0.01, 0.2].into_iter().flat_map(|loss| block_acks.map(|quirks| (loss, quirks)));
    for (i, (loss, quirks)) in cases.enumerate() {
        let words = 128 * 700 + 5;
        let settings = BoardSettings { quirks, ..BoardSettings::default() };
        let mut feb = Fade1Board::new(FEB, settings, Counter { left: words, ..Counter::default() });
        let mut bench = Bench::new(None);
        let (mut up, mut down) =
            (Cable::new(seed + i as u64, loss, 0.02, 0.05), Cable::new(seed + 50, loss, 0.02, 0.05));
        let started = bench.command(fade10g::CMD_START);
        let (mut received, mut stopped) = (0u64, false);
        for _ in 0..2_000_000 {
            bench.wait(Duration::from_micros(50));
            bench.sent.drain(..).for_each(|frame| down.push(&frame));
            while let Some(frame) = down.pop() {
                feb.take(&frame, bench.now);
            }
            while let Some(frame) = feb.give(bench.now) {
                up.push(frame);
            }
            while let Some(frame) = up.pop() {
                bench.frame(&frame);
            }
            bench.confirm();
            let data = bench.reader.available();
            for (word_bytes, at) in data.as_chunks::<8>().0.iter().zip(received..) {
                let expected = if at < words { word(at) } else { u64::from_ne_bytes([0xA5; 8]) };
                assert_eq!(u64::from_le_bytes(*word_bytes), expected, "word {at}");
            }
            let bytes = data.len();
            received += bytes as u64 / 8;
            bench.reader.release(bytes);
            if !stopped && received >= 128 * 700 {
                assert_eq!(started.try_recv().unwrap(), Ok(0));
                bench.command(fade10g::CMD_STOP);
                stopped = true;
            }
            if bench.reader.phase() == Phase::Complete {
                break;
            }
        }
        assert_eq!((received, bench.reader.phase()), (128 * 701, Phase::Complete), "loss {loss}, {quirks:?}");
        assert_eq!(bench.reader.ending(), Ending::Confirmed, "loss {loss}, {quirks:?}");
        let (acks, frames) = (bench.reader.counters.read().acks, bench.reader.counters.read().packets);
        assert_eq!(acks < frames, quirks == Quirks::default(), "block ACKs where the FEB takes them");
        assert!(!feb.status().running && feb.status().protocol_errors == 0);
        assert_eq!(bench.reader.counters.read().protocol_errors, 0);
        assert_eq!(received * 8, 701 * PACKET_BYTES as u64);
    }
}
