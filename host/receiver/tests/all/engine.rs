//! The engine, frame by frame in simulated time. FADELINK_SEED reproduces a run.

use std::time::Duration;

use crate::model::fade10g::{data, feb_mac, Bench, Collect, Outcome, PC, PLAIN};
use crate::model::{word, Cable, SoftFeb, FADELINK};
use fadelink_feb::{Quirk, Quirks};
use fadelink_receiver::engine::{CommandError, FebConfig};
use fadelink_receiver::shared::Phase;
use fadelink_vectors::{bytes, vectors};
use fadelink_wire::fade10g::{self, Identity, Request, ResetBy, Response};

/// It takes block ACKs.
const BLOCKS: Identity = Identity { block_acks: true, ..PLAIN };

fn seed() -> u64 {
    std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1)
}

#[test]
fn each_rule_has_its_action_and_its_counter() {
    let mut bench = Bench::new();
    let shared = bench.open(feb_mac(1), FADELINK);
    bench.frame(&data(0, 0, None));
    bench.frame(&data(0, 0, None));
    let reset = Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };
    assert_eq!(bench.requests(), [reset], "not started: no ACK, but RESET, now and then");
    assert_eq!(shared.counters.read().not_started, 2);
    drop((bench, shared));

    let mut bench = Bench::new();
    let shared = bench.started(feb_mac(1), FADELINK);
    let ack = |packet, sequence| Request::Ack { negative: false, sequence, packet, delay: 7, stored: None };
    bench.frame(&data(0, 0, None));
    assert_eq!(bench.requests(), [ack(0, 0)], "new: stored and confirmed");
    bench.frame(&data(0, 1, None));
    assert_eq!(bench.requests(), [ack(0, 1)], "known: confirmed again, with the new sequence");
    bench.frame(&data(17, 2, None));
    assert_eq!(bench.requests(), [], "newer than the window");
    for packet in 1..16 {
        bench.frame(&data(packet, packet as u16 + 2, None));
    }
    bench.requests();
    bench.frame(&data(16, 18, None));
    assert_eq!(bench.requests(), [], "no free space");
    bench.frame(&data(1, 21, None));
    let counters = shared.counters.read();
    assert_eq!((counters.packets, counters.duplicates, counters.no_space, counters.repaired), (16, 2, 1, 0));
    assert_eq!((counters.protocol_errors, counters.missing_frames, counters.acks), (1, 2, 18));
    assert_eq!(shared.tail(), 16 * 8192);
}

#[test]
fn a_block_ack_tells_all_that_is_stored() {
    let mut bench = Bench::new();
    let shared = bench.started_with(feb_mac(1), FebConfig { ring_packets: 32, ..FADELINK }, BLOCKS);
    let ack = |packet, sequence, stored| {
        let stored = Some(stored);
        [Request::Ack { negative: false, sequence, packet, delay: 7, stored }]
    };
    for packet in [0, 1, 3] {
        bench.frame(&data(packet, packet as u16, None));
    }
    assert_eq!(bench.requests(), [], "more may come");
    bench.confirm();
    assert_eq!(bench.requests(), ack(3, 3, 0b110), "the newest, and what is stored before it");
    bench.confirm();
    assert_eq!(bench.requests(), [], "nothing came");

    bench.frame(&data(5, 5, None));
    bench.frame(&data(2, 6, None));
    bench.frame(&data(5, 7, None));
    bench.confirm();
    assert_eq!(bench.requests(), ack(5, 7, 0b1_1110), "not only of this batch; the sequence is that of the last frame");
    bench.frame(&data(1, 8, None));
    bench.confirm();
    assert_eq!(bench.requests(), ack(1, 8, 0b1), "one whose ACK was lost");
    bench.frame(&data(4 + 17, 9, None));
    bench.confirm();
    assert_eq!(bench.requests(), [], "newer than the window: not confirmed");
    assert_eq!(shared.counters.read().acks, 3);

    bench.stop(feb_mac(1));
    bench.frame(&data(4, 10, None));
    bench.frame(&data(6, 11, Some(0)));
    assert_eq!(shared.phase(), Phase::Complete);
    bench.confirm();
    assert_eq!(bench.requests(), ack(6, 11, 0b11_1111));
}

#[test]
fn the_smallest_window_is_that_of_who_sends() {
    let mut bench = Bench::new();
    assert_eq!(bench.engine.window(), 0);
    let _first = bench.started_with(feb_mac(1), FADELINK, BLOCKS);
    assert_eq!(bench.engine.window(), 16);
    let _second = bench.started(feb_mac(2), FADELINK);
    assert_eq!(bench.engine.window(), 0, "one wants each frame confirmed at once");
    bench.engine.reset(feb_mac(2), &mut Collect(&mut bench.sent, &[]));
    assert_eq!(bench.engine.window(), 16);
    bench.stop(feb_mac(1));
    bench.frame(&data(0, 0, Some(1)));
    assert_eq!(bench.engine.window(), 0, "its end has come");
}

#[test]
fn the_end_is_told_once_all_is_in() {
    let mut bench = Bench::new();
    let shared = bench.started(feb_mac(1), FADELINK);
    bench.stop(feb_mac(1));
    bench.frame(&data(1, 0, Some(5)));
    assert_eq!((shared.phase(), shared.tail()), (Phase::Running, 0));
    bench.frame(&data(0, 1, None));
    assert_eq!((shared.phase(), shared.tail()), (Phase::Complete, 8192 + 40));
    bench.frame(&data(2, 2, None));
    assert_eq!(shared.counters.read().protocol_errors, 1);
    bench.frame(&data(1, 3, Some(5)));
    assert_eq!(bench.requests().len(), 3, "the end is confirmed again");
}

#[test]
fn an_end_that_was_not_asked_for_is_refused() {
    let mut bench = Bench::new();
    let shared = bench.started(feb_mac(1), FADELINK);
    bench.frame(&data(0, 0, Some(5)));
    assert_eq!((shared.phase(), shared.tail(), bench.requests()), (Phase::Running, 0, vec![]));
    assert_eq!(shared.counters.read().protocol_errors, 1);
    bench.stop(feb_mac(1));
    bench.frame(&data(0, 1, Some(5)));
    assert_eq!((shared.phase(), shared.tail()), (Phase::Complete, 40));
}

#[test]
fn a_packet_that_comes_again_with_other_words_is_told() {
    // The last byte of the first word, behind the header, is compared of each FEB, all others of one that sends the same again.
    for (same_words, byte, told) in
        [(true, 40, 1), (true, 48, 1), (true, 8231, 1), (false, 47, 1), (false, 48, 0), (false, 8231, 0)]
    {
        let mut bench = Bench::new();
        let shared = bench.started_with(feb_mac(1), FADELINK, Identity { same_words, ..PLAIN });
        let mut other = data(0, 1, None);
        bench.frame(&data(0, 0, None));
        bench.frame(&other);
        other[byte] ^= 1;
        bench.frame(&other);
        let counters = shared.counters.read();
        assert_eq!((counters.packets, counters.duplicates, counters.contradictions), (1, 2, told), "{byte}");
        assert_eq!(bench.requests().len(), 3, "the FEB goes on");
    }
}

#[test]
fn commands_are_repeated_until_they_are_answered() {
    let mut bench = Bench::new();
    let mac = feb_mac(1);
    bench.open(mac, FADELINK);
    let first = bench.command(mac, 0x0123, 55, 2);
    let second = bench.command(mac, 0x0124, 56, 2);
    bench.identify(mac, false);
    let requests = bench.requests();
    let [Request::Command { code: 0x0123, csn, argument: 55 }] = requests[..] else { panic!("{requests:?}") };
    bench.wait(Duration::from_millis(9));
    assert_eq!(bench.requests(), []);
    bench.wait(Duration::from_millis(1));
    assert_eq!(bench.requests(), requests, "the same CSN again");
    for (code, csn) in [(0x0124, csn), (0x0123, csn.wrapping_add(1))] {
        bench.frame(&Response { code, csn, value: 1 }.to_frame(PC, mac));
    }
    assert!(first.try_recv().is_err(), "other responses answer nothing");
    bench.frame(&Response { code: 0x0123, csn, value: 99 }.to_frame(PC, mac));
    assert_eq!(first.try_recv().unwrap(), Ok(99));
    bench.identify(mac, false);
    let [Request::Command { code: 0x0124, csn: next, .. }] = bench.requests()[..] else { panic!() };
    assert_ne!(next, csn);
    for _ in 0..3 {
        bench.wait(Duration::from_millis(10));
    }
    assert_eq!(bench.requests().len(), 2);
    assert_eq!(second.try_recv().unwrap(), Err(CommandError::Timeout { code: 0x0124, attempts: 3 }));
}

#[test]
fn a_command_is_not_sent_to_a_feb_that_does_not_tell_its_last_number() {
    let mut bench = Bench::new();
    let mac = feb_mac(1);
    bench.open(mac, FADELINK);
    let outcome = bench.command(mac, 0x0123, 55, 2);
    for _ in 0..12 {
        assert!(outcome.try_recv().is_err());
        bench.wait(Duration::from_micros(2500));
    }
    let identify = |request: &Request| matches!(request, Request::Command { code: fade10g::CMD_IDENTIFY, .. });
    let requests = bench.requests();
    assert!(requests.len() == 12 && requests.iter().all(identify), "{requests:?}");
    assert_eq!(outcome.try_recv().unwrap(), Err(CommandError::NotSent { code: 0x0123, attempts: 12 }));
}

/// Its answer, also to another program, does not tell which number was executed last.
#[test]
fn reset_by_has_a_number_of_its_own() {
    let mut bench = Bench::new();
    let mac = feb_mac(1);
    let reader = bench.started(mac, FADELINK);
    bench.sent.clear();
    let outcome = bench.command(mac, 0x0123, 55, 2);
    let identify = bench.sent.clone();
    let Request::Command { csn, .. } = bench.requests()[0] else { panic!() };
    let value = ResetBy { transmission: 1, by: None }.to_value();
    let far = csn.wrapping_add(1000);
    bench.frame(&Response { code: fade10g::CMD_RESET_BY, csn: far, value }.to_frame(PC, mac));
    assert_eq!(reader.counters.read().unexpected_responses, 1);
    bench.sent = identify;
    bench.identify(mac, false);
    let [Request::Command { code: 0x0123, csn: next, .. }] = bench.requests()[..] else { panic!() };
    assert!((1..10).contains(&next.wrapping_sub(csn)), "{csn} {next}");
    assert!(outcome.try_recv().is_err());
}

#[test]
fn no_commands_are_refused() {
    let mut bench = Bench::new();
    bench.open(feb_mac(1), FADELINK);
    for code in [0, fade10g::ACK, fade10g::NACK, fade10g::CMD_RESET, 8, 0xFF] {
        assert_eq!(bench.command(feb_mac(1), code, 0, 0).try_recv().unwrap(), Err(CommandError::BadCode(code)));
    }
    assert_eq!(bench.command(feb_mac(2), 0x0100, 0, 0).try_recv().unwrap(), Err(CommandError::Closed));
    assert!(bench.sent.is_empty());
}

#[test]
fn start_resets_what_still_runs() {
    let mut bench = Bench::new();
    let mac = feb_mac(1);
    let shared = bench.open(mac, FADELINK);
    let outcome = bench.command(mac, fade10g::CMD_START, 0, 3);
    bench.identify(mac, false);
    let Request::Command { csn, .. } = bench.requests()[0] else { panic!() };
    bench.frame(&Response { code: fade10g::CMD_START, csn, value: 2 }.to_frame(PC, mac));
    let reset = Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };
    assert_eq!(bench.requests(), [reset; 3], "one may be lost");
    bench.frame(&data(3, 9, None));
    assert_eq!(shared.counters.read().not_started, 1, "of the old transmission");
    bench.wait(Duration::from_millis(20));
    assert_eq!(bench.requests(), [reset; 3], "there must be silence");
    bench.wait(Duration::from_millis(20));
    let [Request::Command { code: fade10g::CMD_START, csn: again, .. }] = bench.requests()[..] else { panic!() };
    assert_ne!(again, csn);
    bench.frame(&Response { code: fade10g::CMD_START, csn: again, value: 0 }.to_frame(PC, mac));
    assert_eq!(outcome.try_recv().unwrap(), Ok(0));
    bench.frame(&data(0, 0, None));
    assert_eq!(shared.tail(), 8192);
}

#[test]
fn closing_resets_and_answers_who_waits() {
    let mut bench = Bench::new();
    let shared = bench.started(feb_mac(1), FADELINK);
    let outcome = bench.command(feb_mac(1), 0x0100, 0, 5);
    bench.requests();
    bench.engine.close(feb_mac(1), &mut Collect(&mut bench.sent, &[]));
    let reset = Request::Command { code: fade10g::CMD_RESET, csn: 0, argument: 0 };
    assert_eq!(bench.requests(), [reset; 3], "one may be lost");
    assert_eq!(outcome.try_recv().unwrap(), Err(CommandError::Closed));
    assert_eq!(shared.phase(), Phase::Aborted);
}

#[test]
fn strangers_are_reset_now_and_then() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.frame(&data(0, 0, None));
        bench.wait(Duration::from_millis(1));
    }
    let counters = bench.link.read();
    assert_eq!((counters.unknown_feb, counters.resets), (100, 2));
    assert_eq!(bench.requests().len(), 2);
    let shared = bench.started(feb_mac(1), FADELINK);
    assert_eq!(shared.counters.read().interrupted, 1, "what RESET broke off is told");

    let mut bench = Bench::new();
    bench.elsewhere.push(feb_mac(1));
    bench.frame(&data(0, 0, None));
    assert_eq!((bench.link.read().other_program, bench.sent.len()), (1, 0), "another program has it");
}

#[test]
fn every_wrong_frame_is_counted_once() {
    let mut bench = Bench::new();
    let shared = bench.started(feb_mac(1), FADELINK);
    let vectors = vectors("fade10g");
    let before = bench.link.read();
    let mut count = 0;
    for vector in vectors["malformed"].as_array().unwrap() {
        if vector["direction"] == "feb" {
            bench.frame(&bytes(vector));
            count += 1;
        }
    }
    let after = bench.link.read();
    let (feb, link) = (shared.counters.read(), |f: fn(&_) -> u64| f(&after) - f(&before));
    use fadelink_receiver::counters::LinkCounts as L;
    let dropped = link(|c: &L| c.truncated + c.wrong_ethertype + c.wrong_version + c.wrong_type);
    assert_eq!(dropped + feb.wrong_length + feb.wrong_valid_words, count);
    assert_eq!((link(|c| c.truncated), link(|c| c.wrong_version), feb.wrong_length), (2, 0, 2));
    // The vectors have no FADE of a version to come.
    let mut newer = data(0, 0, None);
    newer[14] = 2;
    bench.frame(&newer);
    assert_eq!(bench.link.read().wrong_version, after.wrong_version + 1);
    assert!(bench.sent.is_empty());
}

/// Software FEBs over bad cables: every word once, in order, commands exactly once.
#[test]
fn every_word_of_many_febs_arrives() {
    for case in 0..12u64 {
        let mut random = fastrand::Rng::with_seed(seed() * 1000 + case);
        let mut choose = |values: &[f64]| values[random.usize(..values.len())];
        let (loss, duplicate, reorder) = (choose(&[0.0, 0.02, 0.2]), choose(&[0.0, 0.05]), choose(&[0.0, 0.1, 0.3]));
        let mut bench = Bench::new();
        let mut febs = Vec::new();
        for i in 1..=3u8 {
            let first = if case % 2 == 0 { 0 } else { u32::MAX - 20 };
            let config = FebConfig { ring_packets: 64, first_packet: first, ..FADELINK };
            let shared = bench.open(feb_mac(i), config);
            let words = random.u64(0..100_000);
            let quirks = if i == 1 { Quirks::default().with(Quirk::NoBlockAcks) } else { Quirks::default() };
            let feb = SoftFeb::new(feb_mac(i), 16, first, words, quirks);
            let up = Cable::new(random.u64(..), loss, duplicate, reorder);
            let down = Cable::new(random.u64(..), loss, duplicate, reorder);
            let start = bench.command(feb_mac(i), fade10g::CMD_START, 0, 1000);
            febs.push((feb, shared, up, down, words, start, None::<Outcome>, Vec::<Outcome>::new(), 0u64));
        }
        let mut rounds = 0;
        while !febs.iter().all(|(_, shared, .., read)| shared.phase() == Phase::Complete && *read == shared.tail()) {
            rounds += 1;
            assert!(rounds < 200_000, "case {case}: seed {}", seed());
            bench.wait(Duration::from_micros(100));
            if rounds % 4 == 0 {
                bench.confirm();
            }
            for frame in std::mem::take(&mut bench.sent) {
                let mac = fadelink_wire::ethernet::Header::split(&frame).unwrap().0.dst;
                let (_, _, _, down, ..) = febs.iter_mut().find(|(feb, ..)| feb.feb.mac() == mac).unwrap();
                down.push(&frame);
            }
            for (feb, shared, up, down, words, start, stop, commands, read) in &mut febs {
                if let Some(frame) = down.pop() {
                    feb.take(&frame);
                }
                if let Some(frame) = feb.give(random.bool()) {
                    up.push(&frame);
                }
                if let Some(frame) = up.pop() {
                    bench.frame(&frame);
                }
                if commands.len() < 5 && random.f64() < 0.01 {
                    commands.push(bench.command(feb.feb.mac(), 0x0200, commands.len() as u32, 1000));
                }
                if stop.is_none() && feb.running() && feb.feb.user.left == 0 && start.try_recv() == Ok(Ok(0)) {
                    *stop = Some(bench.command(feb.feb.mac(), fade10g::CMD_STOP, 0, 1000));
                }
                if random.f64() < 0.2 {
                    let data = shared.available();
                    let expected = (0..).map(|i| word(*read / 8 + i));
                    assert!(data.chunks(8).zip(expected).all(|(got, want)| got == want.to_le_bytes()));
                    let bytes = data.len();
                    *read += bytes as u64;
                    assert!(*read <= *words * 8);
                    shared.release(bytes);
                }
            }
        }
        for (feb, shared, .., words, _, stop, commands, read) in &febs {
            assert_eq!(*read, *words * 8, "case {case}");
            assert_eq!(shared.counters.read().protocol_errors, 0);
            assert!(stop.is_some());
            let executed: Vec<u32> = feb.feb.user.executed.iter().map(|(_, argument)| *argument).collect();
            let answered = commands.iter().filter(|c| c.try_recv().is_ok_and(|r| r.is_ok())).count();
            assert!(executed.len() >= answered && executed == (0..executed.len() as u32).collect::<Vec<_>>());
        }
    }
}
