//! The test vectors that all languages share (`tests/vectors`), for the tests of the other crates.

use serde_json::Value;

/// One of the files, by its name without `.json`.
///
/// # Panics
/// There is no such file, or it is not JSON.
pub fn vectors(name: &str) -> Value {
    let path = format!("{}/../../tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

/// A list that is not empty by mistake.
///
/// # Panics
/// It has fewer than four items, or is not a list.
pub fn list<'a>(vectors: &'a Value, name: &str) -> &'a [Value] {
    let found = vectors[name].as_array().unwrap();
    assert!(found.len() >= 4, "{name}");
    found
}

/// Bytes from hexadecimal digits.
///
/// # Panics
/// They are none.
pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// The bytes of a vector's `hex`.
///
/// # Panics
/// It has none.
pub fn bytes(vector: &Value) -> Vec<u8> {
    unhex(vector["hex"].as_str().unwrap())
}

/// The bytes of a frame: `hex`, then the words of `payload`, which count from `first`. A last data frame of FADE-10G is
/// filled up, and ends with the number of its words; above it, if the vector has one, is the CRC.
///
/// # Panics
/// The vector is not a frame.
pub fn frame(vectors: &Value, vector: &Value) -> Vec<u8> {
    let mut frame = bytes(vector);
    let payload = &vector["payload"];
    if let (Some(first), Some(words)) = (payload["first"].as_u64(), payload["words"].as_u64()) {
        frame.extend((0..words).flat_map(|i| first.wrapping_add(i).to_le_bytes()));
        let constant = |name: &str| vectors["constants"][name].as_u64();
        if constant("LAST_WORDS_MAX").is_some_and(|most| words <= most) {
            let (length, filler) = (constant("DATA_FRAME_LEN").unwrap(), constant("FILLER").unwrap());
            frame.resize(length as usize - 8, filler as u8);
            let crc = payload["crc"].as_u64().map_or(0, |crc| crc << 32 | constant("CHECKSUM_MARK").unwrap() << 16);
            frame.extend((words | crc).to_le_bytes());
        }
    }
    frame
}

/// Last data frames of FADE-10G for every number of valid words, in either byte order, and with final words that are not a
/// number; each with the number.
///
/// # Panics
/// The files do not hold them.
pub fn last_frames() -> Vec<(Vec<u8>, Option<u64>)> {
    let (frames, words) = (vectors("fade10g"), vectors("fade10g_valid_words"));
    let empty = list(&frames, "frames").iter().find(|vector| vector["name"] == "last_0").unwrap();
    let empty = frame(&frames, empty);
    let last = |final_word: &Value| {
        let final_word = unhex(final_word.as_str().unwrap());
        [&empty[..empty.len() - 8], &final_word].concat()
    };
    let numbers = ["little", "big"].map(|order| list(&words, order).iter().zip(0..));
    let numbers = numbers.into_iter().flatten().map(|(word, n)| (last(word), Some(n)));
    numbers.chain(list(&words, "neither").iter().map(|word| (last(word), None))).collect()
}
