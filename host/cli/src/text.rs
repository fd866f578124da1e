//! Values that are written as text, in an experiment file and in options.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use toml::Value;

/// A value with a text form; the error names the text and what was expected.
#[derive(Debug, Clone, Copy)]
pub struct Text<T>(pub T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr,
    T::Err: Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        let (text, is_text) = match Value::deserialize(deserializer)? {
            Value::String(text) => (text, true),
            other => (other.to_string(), false),
        };
        match text.parse() {
            Ok(value) if is_text => Ok(Text(value)),
            Ok(_) => Err(D::Error::custom(format!("`{text}`: expected a text: \"{text}\""))),
            Err(expected) => Err(D::Error::custom(format!("`{text}`: {expected}"))),
        }
    }
}

impl<T: FromStr> FromStr for Text<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Text<T>, T::Err> {
        text.parse().map(Text)
    }
}

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T> JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// The path of a file or a folder.
///
/// # Errors
/// It is empty, or the operating system does not take it.
pub fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.is_empty() || text.contains('\0') {
        true => Err(D::Error::custom(format!("`{}`: expected a path", shown(&text)))),
        false => Ok(text.into()),
    }
}

/// The same, of a field that may be left out.
///
/// # Errors
/// As [`path`].
pub fn some_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    path(deserializer).map(Some)
}

/// A text as it is shown to users: a terminal would obey control characters.
pub fn shown(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// A number of bytes, with K, M, G or T for powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        fadelink_sinks::size(text).map(Size).ok_or_else(|| "expected a size like 512M or 1G".into())
    }
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"), (1, "")];
        let (bytes, unit) = units.into_iter().find(|(bytes, _)| self.0.is_multiple_of(*bytes)).unwrap_or((1, ""));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

/// Seconds above 0, at most a year.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Seconds(pub f64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        match crate::number::seconds(&seconds.to_string()) {
            Ok(_) => Ok(Seconds(seconds)),
            Err(expected) => Err(D::Error::custom(format!("`{seconds}`: {expected}"))),
        }
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seconds, String> {
        crate::number::seconds(text).map(|time| Seconds(time.as_secs_f64()))
    }
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Seconds> for std::time::Duration {
    fn from(seconds: Seconds) -> std::time::Duration {
        std::time::Duration::from_secs_f64(seconds.0)
    }
}

/// What a moment may be written as.
const MOMENT: &str = "expected a moment like 2026-12-01T08:00:00Z";

/// A moment, as text or as TOML's own.
fn moment(value: &Value) -> Result<Timestamp, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Datetime(moment) => moment.to_string(),
        other => return Err(format!("`{other}`: {MOMENT}")),
    };
    text.parse().map_err(|_| format!("`{text}`: {MOMENT}, with Z or an offset from UTC, at most {}", Timestamp::MAX))
}

/// A moment in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub Timestamp);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        moment(&Value::deserialize(deserializer)?).map(Moment).map_err(D::Error::custom)
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// When a run begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// At once; the program ends with the run.
    #[default]
    Now,
    /// At a moment; the program ends with the run.
    At(Timestamp),
    /// When it is asked for, again and again, until the program is ended.
    OnCommand,
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Start, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value.as_str() {
            Some("now") => Ok(Start::Now),
            Some("command") => Ok(Start::OnCommand),
            _ => moment(&value)
                .map(Start::At)
                .map_err(|error| D::Error::custom(error.replace("expected a", "expected now, command or a"))),
        }
    }
}

impl Serialize for Start {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Start::Now => serializer.serialize_str("now"),
            Start::At(moment) => serializer.collect_str(moment),
            Start::OnCommand => serializer.serialize_str("command"),
        }
    }
}

impl JsonSchema for Start {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Start".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "anyOf": [{ "enum": ["now", "command"] }, { "format": "date-time" }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_back() {
        for text in ["1", "1023", "1K", "1025", "512M", "3G", "1T"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        assert_eq!(Size(2048 << 20).to_string(), "2G");
    }
}
