//! Whether the values in the file of an experiment are of the kinds that its schema has, where errors of libraries would not say what
//! was expected: words, of which there are a few, and whole numbers.

use std::ops::Range;

use serde_json::Value;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// A value that is of another kind.
#[derive(Debug)]
pub struct Wrong {
    /// Where it is in the text.
    pub at: Range<usize>,
    pub field: String,
    pub expected: String,
}

/// What a field of the schema is: that which a reference leads to; of a field that may be left out, what it is if it is there.
fn resolved<'a>(schema: &'a Value, field: &'a Value) -> &'a Value {
    let with_value = |kinds: &'a Vec<Value>| kinds.iter().find(|kind| kind["$ref"].is_string());
    let field = field["anyOf"].as_array().and_then(with_value).unwrap_or(field);
    let name = field["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    name.map_or(field, |name| &schema["$defs"][name])
}

/// The words that it may be, if it is one of some.
fn words(field: &Value) -> Vec<&str> {
    field["oneOf"].as_array().into_iter().flatten().filter_map(|word| word["const"].as_str()).collect()
}

fn in_words(words: &[&str]) -> String {
    match words {
        [one, other] => format!("expected {one} or {other}"),
        words => format!("expected one of {}", words.join(", ")),
    }
}

fn is_whole(field: &Value) -> bool {
    let kind = &field["type"];
    kind == "integer" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "integer"))
}

/// The largest number that its type has.
fn largest(field: &Value) -> u64 {
    match field["format"].as_str() {
        Some("uint8") => u8::MAX.into(),
        Some("uint16") => u16::MAX.into(),
        Some("uint32") => u32::MAX.into(),
        _ => u64::MAX,
    }
}

/// What it is, in words.
fn kind(field: &Value) -> &'static str {
    let named = |name: &str| match name {
        "string" => Some("a text"),
        "boolean" => Some("true or false"),
        "array" => Some("a list"),
        "object" => Some("a table"),
        "number" => Some("a number of fewer digits"),
        _ => None,
    };
    let all: Vec<_> = match &field["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    all.into_iter().find_map(named).unwrap_or("another value")
}

fn expected_of_whole(field: &Value) -> String {
    let least = field["minimum"].as_u64().unwrap_or(0);
    format!("expected a whole number from {least} to {}", field["maximum"].as_u64().unwrap_or(largest(field)))
}

/// What was expected, if this value is of another kind. Numbers that the type has are checked with what they mean.
fn expected(field: &Value, value: &DeValue<'_>) -> Option<String> {
    let words = words(field);
    let fits = |number: &str, radix| {
        i128::from_str_radix(number, radix).is_ok_and(|number| (0..=i128::from(largest(field))).contains(&number))
    };
    match value {
        DeValue::String(text) if words.contains(&&**text) => None,
        _ if !words.is_empty() => Some(in_words(&words)),
        DeValue::Integer(number) if is_whole(field) && fits(number.as_str(), number.radix()) => None,
        _ if is_whole(field) => Some(expected_of_whole(field)),
        // The library takes a list of its fields in their order, too.
        value if field["type"] == "object" && !matches!(value, DeValue::Table(_)) => Some("expected a table".into()),
        // A number that the library does not have.
        DeValue::Integer(number) if i64::from_str_radix(number.as_str(), number.radix()).is_err() => {
            Some(format!("expected {}", kind(field)))
        }
        _ => None,
    }
}

fn check_value(schema: &Value, field: &Value, value: &Spanned<DeValue<'_>>, name: &str) -> Result<(), Wrong> {
    let field = resolved(schema, field);
    if let Some(expected) = expected(field, value.get_ref()) {
        return Err(Wrong { at: value.span(), field: name.to_owned(), expected });
    }
    match value.get_ref() {
        DeValue::Table(table) => check_table(schema, field, table, &format!("{name}.")),
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(number, item)| check_value(schema, &field["items"], item, &format!("{name}[{number}]"))),
        _ => Ok(()),
    }
}

fn check_table(schema: &Value, fields: &Value, table: &DeTable<'_>, before: &str) -> Result<(), Wrong> {
    table.iter().try_for_each(|(name, value)| {
        let name = name.get_ref();
        check_value(schema, &fields["properties"][&**name], value, &format!("{before}{name}"))
    })
}

/// Checks a file. What the schema does not have is of those who read it.
///
/// # Errors
/// The first value of another kind.
pub fn check(schema: &Value, file: &DeTable<'_>) -> Result<(), Wrong> {
    check_table(schema, schema, file, "")
}
