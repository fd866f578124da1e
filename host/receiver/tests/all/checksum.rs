//! The CRC of the words of a transmission: when it is asked for, and what is known of it.

use crate::model::fade10g::{data, feb_mac, Bench, PC, PLAIN};
use crate::model::{fade1 as v1, FADELINK};
use fadelink_receiver::engine::FebConfig;
use fadelink_receiver::shared::{Phase, Reader};
use fadelink_receiver::told::{Expected, WordsCrc};
use fadelink_wire::fade10g::{self, final_word, Identity, Request, Response};
use fadelink_wire::{fade1, Checksum, Firmware, Protocol, WordOrder};

const ASKS: FebConfig = FebConfig { checksum: true, firmware: None, ..FADELINK };

/// START, answered by a FEB that may have the CRC; the argument that it had.
fn started(config: FebConfig, has_it: bool) -> (Bench, Reader, u32) {
    let mut bench = Bench::new();
    let reader = bench.open(feb_mac(1), config);
    let outcome = bench.command(feb_mac(1), fade10g::CMD_START, 0, 0);
    bench.identify_with(feb_mac(1), Identity { checksum: has_it, ..PLAIN });
    let Request::Command { code: fade10g::CMD_START, csn, argument } = bench.requests()[0] else { panic!() };
    bench.frame(&Response { code: fade10g::CMD_START, csn, value: 0 }.to_frame(PC, feb_mac(1)));
    assert_eq!(outcome.try_recv().unwrap(), Ok(0));
    (bench, reader, argument)
}

/// A last packet that tells a CRC.
fn last(packet: u32, words: u16, crc: u32) -> Vec<u8> {
    let mut frame = data(packet, packet as u16, Some(words.into()));
    let at = frame.len() - 8;
    frame[at..].copy_from_slice(&final_word(words, Some(crc)));
    frame
}

#[test]
fn it_is_asked_for_where_the_board_has_it_and_the_words_are_kept() {
    let big = FebConfig { word_order: Some(WordOrder::Big), ..ASKS };
    let little = FebConfig { word_order: Some(WordOrder::Little), ..ASKS };
    let cases = [
        (ASKS, true, Expected::Yes),
        (little, true, Expected::Yes),
        (FebConfig { firmware: Some(Firmware::Fadelink), ..ASKS }, true, Expected::Yes),
        (ASKS, false, Expected::No),
        (FebConfig { checksum: false, ..ASKS }, true, Expected::No),
        (big, true, Expected::No),
    ];
    for (config, has_it, expected) in cases {
        let (mut bench, reader, argument) = started(config, has_it);
        let asked = argument & fade10g::START_CHECKSUM != 0;
        assert_eq!((asked, reader.told.expected_crc()), (expected == Expected::Yes, expected));
        bench.stop(feb_mac(1));
        bench.frame(&data(0, 0, None));
        assert_eq!(reader.told.crc(), None);
        bench.frame(&last(1, 5, 0xCBF43926));
        let told = WordsCrc { crc: 0xCBF43926, filler_words: 0 };
        assert_eq!(reader.told.crc(), (expected == Expected::Yes).then_some(told));
        assert_eq!((reader.phase(), reader.tail()), (Phase::Complete, 8192 + 40), "the number of words is read");
    }
}

#[test]
fn a_board_that_does_not_tell_it_is_known() {
    let (mut bench, reader, _) = started(ASKS, true);
    bench.stop(feb_mac(1));
    bench.frame(&data(0, 0, Some(7)));
    assert_eq!(reader.phase(), Phase::Complete);
    assert_eq!((reader.told.expected_crc(), reader.told.crc()), (Expected::Yes, None));
}

/// A packet that is not taken tells nothing.
#[test]
fn an_end_that_nobody_asked_for_tells_none() {
    let (mut bench, reader, _) = started(ASKS, true);
    bench.frame(&last(0, 5, 1));
    assert_eq!((reader.told.crc(), reader.counters.read().protocol_errors), (None, 1));
}

#[test]
fn fade1_tells_it_with_the_end() {
    for (word_order, last_words, filler_words) in
        [(None, 0, Some(0)), (None, 1, Some(127)), (None, 127, Some(1)), (Some(WordOrder::Big), 1, None)]
    {
        let mut bench =
            v1::Bench::started_with(FebConfig { word_order, checksum: true, ..v1::config(Some(Protocol::Fade1)) });
        bench.command(fade10g::CMD_STOP);
        let state = |phase, packets, transmission| {
            let checksum = Some(Checksum { last_words, crc: 9 });
            let state = fade1::State { phase, transmission, packets, resets: None, checksum, permit: None };
            state.to_frame(v1::PC, v1::FEB)
        };
        let number = bench.transmission;
        bench.frame(&state(fade1::Phase::Ended, 1, number.wrapping_add(1)));
        bench.frame(&state(fade1::Phase::Ended, 2, number));
        assert_eq!(bench.reader.told.crc(), None, "another transmission, another number of packets");
        bench.frame(&state(fade1::Phase::Ended, 1, number));
        assert_eq!(bench.reader.phase(), Phase::Complete);
        assert_eq!(bench.reader.told.expected_crc(), Expected::Maybe);
        assert_eq!(bench.reader.told.crc(), filler_words.map(|filler_words| WordsCrc { crc: 9, filler_words }));
    }
}
