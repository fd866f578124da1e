//! The shared vectors of `tests/vectors`.

use serde_json::Value;

/// One of their files.
pub fn vectors(name: &str) -> Value {
    let path = format!("{}/../../tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

/// The bytes of a vector.
pub fn bytes(vector: &Value) -> Vec<u8> {
    let text = vector["hex"].as_str().unwrap();
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// A list that is not empty by mistake.
pub fn list<'a>(vectors: &'a Value, name: &str) -> &'a [Value] {
    let found = vectors[name].as_array().unwrap();
    assert!(found.len() >= 4);
    found
}
