//! Numbers as users write them: decimal, or hexadecimal with 0x; and as JSON readers take them.

use serde_json::Value;

use crate::exit::Usage;

/// The largest whole number up to which readers of JSON have all (RFC 8259, section 6).
const EXACT: u64 = (1 << 53) - 1;

/// A 64-bit word in JSON: a number if every reader takes it exactly, else its decimal digits as a string.
pub fn json(word: u64) -> Value {
    match word {
        ..=EXACT => word.into(),
        _ => word.to_string().into(),
    }
}

/// Parses an unsigned number up to `max`.
fn parse(text: &str, max: u64) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let value = match digits {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    };
    value
        .filter(|value| *value <= max)
        .ok_or_else(|| format!("expected a number from 0 to {max:#x}, decimal or hexadecimal with 0x"))
}

/// Of 16 bits.
pub fn u16(text: &str) -> Result<u16, String> {
    parse(text, u16::MAX.into()).map(|value| value as u16)
}

/// Of 32 bits.
pub fn u32(text: &str) -> Result<u32, String> {
    parse(text, u32::MAX.into()).map(|value| value as u32)
}

/// Of 64 bits.
pub fn u64(text: &str) -> Result<u64, String> {
    parse(text, u64::MAX)
}

/// What follows a number of a command or register: nothing, or one number of 32 bits.
///
/// # Errors
/// [`Usage`].
pub fn plain(value: &[String]) -> Result<Option<u32>, Usage> {
    match value {
        [] => Ok(None),
        [number] => u32(number).map(Some).map_err(|error| Usage(format!("argument `{number}`: {error}"))),
        _ => Err(Usage(format!("argument `{}`: expected one number; units are for names", value.join(" ")))),
    }
}

/// Seconds, with a fraction, more than 0 and at most a year.
pub fn seconds(text: &str) -> Result<std::time::Duration, String> {
    text.parse()
        .ok()
        .filter(|seconds| *seconds > 0.0 && *seconds <= 366.0 * 86400.0)
        .map(std::time::Duration::from_secs_f64)
        .ok_or_else(|| "expected a number of seconds above 0, at most a year".into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_that_doubles_do_not_have_are_strings() {
        assert_eq!(super::json((1 << 53) - 1), serde_json::json!(9_007_199_254_740_991_u64));
        assert_eq!(super::json(1 << 53), serde_json::json!("9007199254740992"));
        assert_eq!(super::json(u64::MAX), serde_json::json!("18446744073709551615"));
    }

    #[test]
    fn numbers() {
        assert_eq!(super::u16("0x0100"), Ok(256));
        assert_eq!(super::u32("4294967295"), Ok(u32::MAX));
        for bad in ["", "0x", "65536", "0x10000", "-1", "+1", "0x+1", "1.5", "x"] {
            assert!(super::u16(bad).is_err(), "{bad}");
        }
        for bad in ["0", "-1", "nan", "inf", "1e30", ""] {
            assert!(super::seconds(bad).is_err(), "{bad}");
        }
    }
}
