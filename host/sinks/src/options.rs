//! Options of a sink, which follow its path: `,NAME` or `,NAME=VALUE`.

use std::time::Duration;

/// Those that nobody has asked for yet.
pub struct Options<'a>(Vec<(&'a str, Option<&'a str>)>);

/// A number of bytes above 0, with K, M, G or T for powers of 1024.
pub fn size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| (1..1 << 50).contains(bytes))
}

impl<'a> Options<'a> {
    /// From the text behind the place, without its first comma.
    pub fn of(texts: impl Iterator<Item = &'a str>) -> Options<'a> {
        Options(
            texts.map(|text| text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))).collect(),
        )
    }

    fn take(&mut self, name: &str) -> Option<Option<&'a str>> {
        let index = self.0.iter().position(|(other, _)| *other == name)?;
        Some(self.0.remove(index).1)
    }

    /// The value of an option that has one.
    ///
    /// # Errors
    /// It has none.
    pub fn value(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value)),
            Some(None) => Err(format!("option `{name}`: expected {name}=VALUE")),
        }
    }

    /// True if the option is there, which has no value.
    ///
    /// # Errors
    /// It has one.
    pub fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(false),
            Some(None) => Ok(true),
            Some(Some(value)) => Err(format!("option `{name}={value}`: expected {name} alone")),
        }
    }

    /// A number of bytes, more than 0.
    ///
    /// # Errors
    /// It is not a valid value.
    pub fn size(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.value(name)? else { return Ok(None) };
        size(text).map(Some).ok_or_else(|| format!("{name} `{text}`: expected a size like 512M or 1G"))
    }

    /// A time.
    ///
    /// # Errors
    /// It is not a valid value.
    pub fn seconds(&mut self, name: &str) -> Result<Option<Duration>, String> {
        let Some(text) = self.value(name)? else { return Ok(None) };
        let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.map(Some).ok_or_else(|| format!("{name} `{text}`: expected seconds, zero or more"))
    }

    /// Those that are left are known to nobody.
    ///
    /// # Errors
    /// The first of them.
    pub fn end(self) -> Result<(), String> {
        match self.0.first() {
            None => Ok(()),
            Some((name, value)) => Err(format!("option `{name}{}`", value.map_or(String::new(), |v| format!("={v}")))),
        }
    }
}
