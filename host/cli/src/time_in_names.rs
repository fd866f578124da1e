//! `{time}` in the names of files: when the program was started, so that a program that is started again makes others.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::OnceLock;

use jiff::tz::TimeZone;
use jiff::Timestamp;

/// What stands for the time.
const TIME: &str = "{time}";

/// The same name with the time of the start in UTC, as 20261128T143000Z.
pub fn expand(name: &str) -> String {
    static STARTED: OnceLock<String> = OnceLock::new();
    let now = || Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
    name.replace(TIME, STARTED.get_or_init(now))
}

/// A sink as its user writes it.
///
/// # Errors
/// What was expected.
pub fn sink<S: FromStr<Err: Display>>(text: &str) -> Result<S, String> {
    expand(text).parse().map_err(|error: S::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_of_the_start() {
        let name = expand("a-{time}.dat");
        assert_eq!(expand("a-{time}.dat"), name);
        let time = name.strip_prefix("a-").and_then(|name| name.strip_suffix(".dat")).unwrap();
        assert!(time.len() == 16 && time.starts_with("20") && &time[8..9] == "T" && time.ends_with('Z'), "{time}");
        assert_eq!(expand("a{stream}.dat"), "a{stream}.dat");
    }
}
