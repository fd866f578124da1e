//! The driver's rules and the engine give the same answers for the shared vectors, random frames and random traces.
//! FADELINK_SEED reproduces a run.

use fadelink_driver_check as c;
use fadelink_receiver::sets::Sets;
use fadelink_receiver::window::{self, Window};
use fadelink_vectors::{frame, last_frames, list, vectors};
use fadelink_wire::ethernet::Header;
use fadelink_wire::fade10g::{self, Data, Error, FebFrame, Request, DATA_FRAME_LEN, PACKET_BYTES, REQUEST_LEN};
use fadelink_wire::{fade1, MacAddr, Permit, Protocol};

/// `FADE_HEAD_LEN`
const HEAD_LEN: usize = 48;
const PC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 0xf0]);
const FEB: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

fn random() -> fastrand::Rng {
    let seed = std::env::var("FADELINK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    fastrand::Rng::with_seed(seed)
}

fn vector_frames(vectors: &serde_json::Value) -> Vec<Vec<u8>> {
    let all = list(vectors, "frames").iter().chain(list(vectors, "malformed"));
    all.map(|vector| frame(vectors, vector)).collect()
}

fn c_parse(frame: &[u8]) -> (c::Kind, c::Frame) {
    let mut out = c::Frame::default();
    // Pieces of their own, so that reading beyond them is found by a memory checker.
    let head = frame[..frame.len().min(HEAD_LEN)].to_vec();
    let final_word = frame.last_chunk::<8>().copied().unwrap_or_default();
    // SAFETY: the pieces that the function names, and a place for the fields.
    let kind = unsafe { c::fade_parse(head.as_ptr(), frame.len(), final_word.as_ptr(), &raw mut out) };
    (kind, out)
}

/// The same of frames that are told to be of FADE v1.
fn assert_same1(frame: &[u8]) {
    let (kind, fields) = c_parse(frame);
    let expected = match fade1::parse_feb(frame) {
        Ok((_, fade1::FebFrame::State(state))) => {
            let ours = (state.phase as u16, state.transmission, state.packets);
            assert_eq!((fields.sequence, fields.number, fields.packet), ours);
            assert_eq!(fields.permit_told.then_some(fields.permit), state.permit.map(Permit::bits));
            c::Kind::State1
        }
        Ok((_, fade1::FebFrame::Data(data))) => {
            let ours = (data.set, u32::from(data.packet), data.retry, data.delay, data.block_acks);
            assert_eq!((fields.sequence, fields.packet, fields.retry, fields.delay, fields.block_acks), ours);
            c::Kind::Data1
        }
        Err(fade1::Error::Truncated { .. }) => c::Kind::Truncated,
        Err(fade1::Error::EtherType(_)) => c::Kind::EtherType,
        Err(fade1::Error::Version(_)) => c::Kind::Version,
        Err(fade1::Error::Type(_) | fade1::Error::State(_)) => c::Kind::Type,
        Err(fade1::Error::Length(_)) => c::Kind::Length,
        Err(fade1::Error::Packet(_)) => c::Kind::Packet1,
    };
    assert_eq!(kind, expected, "{frame:02x?}");
}

fn assert_same(frame: &[u8]) {
    if Protocol::of(frame) == Protocol::Fade1 {
        return assert_same1(frame);
    }
    let (kind, fields) = c_parse(frame);
    let response = |r: Option<fade10g::Response>| {
        // Without a response the code is zero; the rest does not matter.
        let expected = r.map_or(0, |r| r.code);
        assert_eq!(fields.response.code, expected, "{frame:02x?}");
        if let Some(r) = r {
            assert_eq!((fields.response.csn, fields.response.value), (r.csn, r.value));
        }
    };
    let expected = match fade10g::parse_feb(frame) {
        Ok((_, FebFrame::Data(data))) => {
            response(data.response);
            let ours = (data.sequence, data.packet, data.delay, data.last);
            let last = fields.last.then_some(fields.last_words);
            assert_eq!((fields.sequence, fields.packet, fields.delay, last), ours);
            c::Kind::Data
        }
        Ok((_, FebFrame::Response(r))) => {
            response(r);
            c::Kind::Response
        }
        Err(Error::Truncated { .. }) => c::Kind::Truncated,
        Err(Error::EtherType(_)) => c::Kind::EtherType,
        Err(Error::Version(_)) => c::Kind::Version,
        Err(Error::Type(_) | Error::Code(_)) => c::Kind::Type,
        Err(Error::Length(_)) => c::Kind::Length,
        Err(Error::ValidWords(_)) => c::Kind::ValidWords,
    };
    assert_eq!(kind, expected, "{frame:02x?}");
}

#[test]
fn shared_vectors_and_what_is_near_them_parse_alike() {
    let mut random = random();
    let frames = [vector_frames(&vectors("fade10g")), vector_frames(&vectors("fade1"))].concat();
    for frame in frames {
        assert_same(&frame);
        for len in 0..frame.len().min(100) {
            assert_same(&frame[..len]);
        }
        for _ in 0..200 {
            let mut near = frame.clone();
            if near.is_empty() {
                continue;
            }
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..near.len().min(48));
                near[at] = random.u8(..);
            }
            if random.bool() {
                let last = near.len() - 1;
                near[last] ^= 1 << random.u8(..8);
                near.push(0);
                near.truncate(random.usize(last..last + 3));
            }
            assert_same(&near);
        }
    }
}

#[test]
fn valid_words_are_read_in_either_byte_order() {
    for (frame, words) in last_frames() {
        assert_same(&frame);
        let (kind, fields) = c_parse(&frame);
        let read = (kind == c::Kind::Data).then_some(fields.last_words);
        assert_eq!(read, words, "{:02x?}", frame.last_chunk::<8>());
    }
}

#[test]
fn random_frames_parse_alike() {
    let mut random = random();
    for _ in 0..20_000 {
        let mut frame: Vec<u8> = (0..random.usize(0..100)).map(|_| random.u8(..)).collect();
        if random.bool() {
            let head = [0xFA, 0xDE, 1, 0, 0xA5, *random.choice(&[0xA5, 0xA6, 0x5A, 0xA7]).unwrap()];
            frame.resize(frame.len().max(18), 0);
            frame[12..18].copy_from_slice(&head);
            if random.u8(..4) == 0 {
                frame[14..16].copy_from_slice(&[0xA5, 0xA5]);
            }
            if random.bool() {
                frame.resize(*random.choice(&[DATA_FRAME_LEN, fade1::DATA_FRAME_LEN]).unwrap(), 0);
            }
        }
        assert_same(&frame);
    }
}

#[test]
fn requests_are_the_same_bytes() {
    let mut random = random();
    for _ in 0..1000 {
        let what = c::Confirmation {
            index: 0,
            stored: random.u64(..),
            packet: random.u32(..),
            delay: random.u32(..),
            sequence: random.u16(..),
            block: random.bool(),
            fade1: false,
        };
        let mut out = [0; REQUEST_LEN];
        // SAFETY: all pointers are to live memory of the sizes that the functions name.
        unsafe { c::fade_ack(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), &raw const what) };
        let c::Confirmation { sequence, packet, delay, .. } = what;
        let stored = what.block.then_some(what.stored);
        assert_eq!(out, Request::Ack { negative: false, sequence, packet, delay, stored }.to_frame(FEB, PC));
        let (code, csn, argument) = (random.u16(..), random.u16(..), random.u32(..));
        // SAFETY: as above.
        unsafe { c::fade_command(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), code, csn, argument) };
        assert_eq!(out, Request::Command { code, csn, argument }.to_frame(FEB, PC));
        assert_eq!(Header::split(&out).unwrap().0.dst, FEB);
        let (set, packet) = (sequence, random.u8(..64));
        let what = c::Confirmation { packet: packet.into(), fade1: true, ..what };
        // SAFETY: as above.
        unsafe { c::fade_ack(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), &raw const what) };
        assert_eq!(out, fade1::Request::Ack { set, packet, stored }.to_frame(FEB, PC));
    }
    let number = random.u16(..);
    let permit = Permit::new(random.u32(..));
    let start = fade1::Request::Start { transmission: number, permit: Some(permit) };
    let requests = [start, fade1::Request::Stop, fade1::Request::Reset];
    for (request, kind) in requests.into_iter().zip([fade1::TYPE_START, fade1::TYPE_STOP, fade1::TYPE_RESET]) {
        let mut out = [0; REQUEST_LEN];
        // SAFETY: as above.
        unsafe { c::fade1_request(out.as_mut_ptr(), FEB.0.as_ptr(), PC.0.as_ptr(), kind, number, permit.bits()) };
        assert_eq!(out, request.to_frame(FEB, PC));
    }
}

#[test]
fn random_traces_of_sets_are_judged_alike() {
    let mut random = random();
    let mut seen = [0u64; 4];
    for _ in 0..200 {
        let ring = 64 << random.u32(..3);
        let mut ours = Sets::new(ring);
        let mut theirs = c::Sets { ring_packets: ring, ..Default::default() };
        let mut released = 0u64;
        for _ in 0..4000 {
            if random.u8(..20) == 0 {
                released = random.u64(released..=theirs.in_order);
            }
            let offset = if random.bool() { random.i64(0..4) } else { random.i64(-80..110) };
            let number = (theirs.in_order as i64 + offset) as u64;
            let (set, packet) = ((number / 32) as u16, (number % 32) as u8);
            let mut at = 0;
            // SAFETY: a live window and index.
            let verdict = unsafe { c::fade1_sets_judge(&raw const theirs, set, packet.into(), released, &raw mut at) };
            let expected = match ours.judge(set, packet, released) {
                window::Verdict::Store { index } => {
                    assert_eq!(at, index);
                    let filled_gap = ours.stored(index);
                    // SAFETY: as above.
                    assert_eq!(unsafe { c::fade1_sets_stored(&raw mut theirs, at) }, filled_gap);
                    c::Verdict::Store
                }
                window::Verdict::ConfirmAgain { index } => {
                    assert_eq!(at, index);
                    // SAFETY: as above.
                    let stored = unsafe { c::fade1_sets_stored_before(&raw const theirs, at) };
                    assert_eq!(stored, ours.stored_before(at), "before {at} of {theirs:?}");
                    c::Verdict::ConfirmAgain
                }
                window::Verdict::NoSpace => c::Verdict::NoSpace,
                window::Verdict::ProtocolError => c::Verdict::ProtocolError,
            };
            assert_eq!(verdict, expected, "set {set} packet {packet} of {theirs:?}");
            seen[verdict as usize] += 1;
            assert_eq!((theirs.in_order * 1024, theirs.ahead == 0), (ours.bytes(), ours.is_gap_free()));
        }
    }
    assert!(seen.iter().all(|n| *n > 1000), "every verdict was met: {seen:?}");
}

#[test]
fn random_traces_are_judged_alike() {
    let mut random = random();
    let mut seen = [0u64; 4];
    let payload = [0; PACKET_BYTES];
    for _ in 0..300 {
        let (first, size) = (random.u32(..), random.u32(1..=64));
        let ring = u64::from(size.next_power_of_two()) << random.u32(..3);
        let mut ours = Window::new(first, size, ring);
        let mut theirs = c::Window::default();
        // SAFETY: a live window.
        unsafe { c::fade_window_init(&raw mut theirs, first, size, ring) };
        let (mut released, end) = (0u64, random.u64(1..2000));
        for _ in 0..3000 {
            if random.u8(..20) == 0 {
                released = random.u64(released..=theirs.in_order);
            }
            let near = random.i64(-70..70);
            let index =
                if random.bool() { theirs.in_order as i64 + near.rem_euclid(4) } else { theirs.in_order as i64 + near };
            let packet = first.wrapping_add(index as u32);
            let last = match random.u8(..40) {
                0 => Some(random.u64(..3)),
                1 => None,
                _ => (index as u64 == end).then_some(1),
            };
            let data = Data { sequence: 0, packet, delay: 0, response: None, last, payload: &payload };
            let frame = c::Frame { packet, last: last.is_some(), last_words: last.unwrap_or(0), ..Default::default() };
            let mut at = 0;
            // SAFETY: live window, frame and index.
            let verdict = unsafe { c::fade_window_judge(&raw const theirs, &raw const frame, released, &raw mut at) };
            let expected = match ours.judge(data.packet, data.last, released) {
                window::Verdict::Store { index } => {
                    assert_eq!(at, index);
                    // SAFETY: as above.
                    assert_eq!(
                        unsafe { c::fade_window_slot(&raw const theirs, at) },
                        (u64::from(first) + index) % ring
                    );
                    // What is judged a store is not always stored.
                    if random.u8(..10) > 0 {
                        let filled_gap = ours.stored(index, last);
                        // SAFETY: as above.
                        let theirs = unsafe { c::fade_window_stored(&raw mut theirs, at, &raw const frame) };
                        assert_eq!(theirs, filled_gap);
                    }
                    c::Verdict::Store
                }
                window::Verdict::ConfirmAgain { index } => {
                    assert_eq!(at, index);
                    // SAFETY: as above.
                    let stored = unsafe { c::fade_window_stored_before(&raw const theirs, at) };
                    assert_eq!(stored, ours.stored_before(at), "before {at} of {theirs:?}");
                    c::Verdict::ConfirmAgain
                }
                window::Verdict::NoSpace => c::Verdict::NoSpace,
                window::Verdict::ProtocolError => c::Verdict::ProtocolError,
            };
            assert_eq!(verdict, expected, "packet {index} of {theirs:?}");
            seen[verdict as usize] += 1;
            // SAFETY: as above.
            let (bytes, complete) =
                unsafe { (c::fade_window_bytes(&raw const theirs), c::fade_window_complete(&raw const theirs)) };
            assert_eq!((bytes, complete), (ours.bytes(), ours.complete()));
        }
    }
    assert!(seen.iter().all(|n| *n > 1000), "every verdict was met: {seen:?}");
}

#[test]
fn constants_agree() {
    let rules = include_str!("../../../../driver/fade_rules.h");
    // The rest the driver does not look at.
    defines_agree(
        &vectors("fade10g"),
        rules,
        "FADE_",
        &["DATA_FRAME_LEN", "IDENTITY_RESETS", "IDENTITY_CHECKSUM", "IDENTITY_SAME_WORDS", "START_CHECKSUM"],
    );
    let rules = include_str!("../../../../driver/fade1_rules.h");
    // The rest is the same as in FADE-10G and defined there, or of frames that the driver does not build or look at.
    let others =
        ["DATA_FRAME_LEN", "ETHERTYPE", "FILLER", "REQUEST_LEN", "STATE_FRAME_LEN", "STATE_RESETS", "CHECKSUM_MARK"];
    defines_agree(&vectors("fade1"), rules, "FADE1_", &others);
}

fn defines_agree(vectors: &serde_json::Value, header: &str, prefix: &str, others: &[&str]) {
    let define = |name: &str| {
        let line = header.lines().find(|line| line.split_whitespace().nth(1) == Some(&format!("{prefix}{name}")));
        let value = line.and_then(|line| line.split_whitespace().nth(2)).unwrap_or_else(|| panic!("{prefix}{name}"));
        value.strip_prefix("0x").map_or_else(|| value.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    };
    for (name, value) in vectors["constants"].as_object().unwrap() {
        if !others.contains(&name.as_str()) {
            assert_eq!(define(name), value.as_u64(), "{name}");
        }
    }
}
