//! Numbers as users write them: decimal, or hexadecimal with 0x; and as JSON readers take them.

use serde_json::Value;

use crate::exit::Usage;

/// The largest whole number up to which readers of JSON have all (RFC 8259, section 6).
const EXACT: u64 = (1 << 53) - 1;

/// A whole number in JSON: a number if every reader takes it exactly, else its decimal digits as a string.
pub fn json(whole: impl Into<i128>) -> Value {
    let whole = whole.into();
    match i64::try_from(whole) {
        Ok(number) if number.unsigned_abs() <= EXACT => number.into(),
        _ => whole.to_string().into(),
    }
}

/// So many steps of this size in JSON: a number if a double has it, else its decimal digits as a string. A step is what its
/// shortest decimal says; so 3 steps of 0.1 are 0.3. Up to 32 bits of steps a double keeps apart whatever their size is.
pub fn scaled(steps: i128, scale: f64) -> Value {
    let (whole, text) = times(steps, scale);
    let nearest: f64 = text.parse().unwrap_or(f64::INFINITY);
    let product = steps as f64 * scale;
    let is_exact = steps as f64 as i128 == steps && (steps as f64).mul_add(scale, -product) == 0.0;
    let is_large = whole && nearest.abs() > EXACT as f64;
    match () {
        () if is_large || !nearest.is_finite() => text.into(),
        () if steps.unsigned_abs() <= u32::MAX.into() || times(1, nearest).1 == text => nearest.into(),
        () if is_exact => product.into(),
        () => text.into(),
    }
}

/// The product in decimal digits, and whether it is a whole number.
fn times(steps: i128, scale: f64) -> (bool, String) {
    // The shortest digits that are this double: 17 at most, so that the product has less than 127 bits.
    let text = format!("{scale:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
    let mut product = format!("{before}{after}").parse::<i128>().unwrap_or(0) * steps;
    let mut exponent = exponent.parse::<i32>().unwrap_or(0) - after.len() as i32;
    while exponent < 0 && product % 10 == 0 && product != 0 {
        (product, exponent) = (product / 10, exponent + 1);
    }
    let sign = if product < 0 { "-" } else { "" };
    let digits = product.unsigned_abs().to_string();
    let text = match exponent {
        _ if product == 0 => "0".into(),
        0..=20 => format!("{sign}{digits}{}", "0".repeat(exponent as usize)),
        -40..0 => {
            let places = exponent.unsigned_abs() as usize;
            let digits = format!("{digits:0>width$}", width = places + 1);
            let (whole, part) = digits.split_at(digits.len() - places);
            format!("{sign}{whole}.{part}")
        }
        _ => format!("{sign}{digits}e{exponent}"),
    };
    (exponent >= 0 || product == 0, text)
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
        assert_eq!(super::json((1_u64 << 53) - 1), serde_json::json!(9_007_199_254_740_991_u64));
        assert_eq!(super::json(1_u64 << 53), serde_json::json!("9007199254740992"));
        assert_eq!(super::json(1 - (1_i64 << 53)), serde_json::json!(-9_007_199_254_740_991_i64));
        assert_eq!(super::json(-(1_i64 << 53)), serde_json::json!("-9007199254740992"));
        assert_eq!(super::json(i64::MIN), serde_json::json!("-9223372036854775808"));
        assert_eq!(super::json(u64::MAX), serde_json::json!("18446744073709551615"));
    }

    #[test]
    fn scaled_values_that_doubles_do_not_have_are_strings() {
        for (steps, scale, expected) in [
            (0, 0.1, "0.0"),
            (3, 0.1, "0.3"),
            (-25, 0.0625, "-1.5625"),
            (6000, 0.25, "1500.0"),
            // The exact product has more digits than a double, and every step still has a value of its own.
            (1_000_003, 5.0 / 1023.0, "4887.600195503422"),
            (1, 1e-7, "1e-7"),
            ((1 << 53) - 1, 1.0, "9007199254740991.0"),
            (1 << 53, 1.0, "\"9007199254740992\""),
            (5_062_402_520_109_827_841, 1.0, "\"5062402520109827841\""),
            (-5_062_402_520_109_827_841, 1.0, "\"-5062402520109827841\""),
            (5_062_402_520_109_827_841, 0.5, "\"2531201260054913920.5\""),
            (5_062_402_520_109_827_841, 0.001, "\"5062402520109827.841\""),
            (5_062_402_520_109_827_841, 1e-20, "\"0.05062402520109827841\""),
            (u64::MAX.into(), 10.0, "\"184467440737095516150\""),
            (u64::MAX.into(), 1e30, "\"18446744073709551615e30\""),
            (1, 1e30, "\"1e30\""),
            (1 << 60, 0.000_976_562_5, "1125899906842624.0"),
            // A double has this one, though its decimal is longer.
            ((1 << 50) + 1, 2.0_f64.powi(-32), "262144.00000000023"),
        ] {
            assert_eq!(super::scaled(steps, scale).to_string(), expected, "{steps} of {scale}");
        }
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
