//! What was expected instead of a wrong value, where a library says it in its own words.

/// In words for users; `None`: the standard library says nothing like this.
pub fn in_words(said: &str) -> Option<String> {
    Some(match said {
        "invalid digit found in string"
        | "cannot parse integer from empty string"
        | "number too large to fit in target type"
        | "number too small to fit in target type" => "expected a whole number".into(),
        "invalid float literal" | "cannot parse float from empty string" => "expected a number".into(),
        "invalid IP address syntax" => "expected an IP address, as 10.9.0.2".into(),
        "invalid IPv4 address syntax" => "expected an IPv4 address, as 10.9.0.2".into(),
        "invalid socket address syntax" => "expected an IP address and a port, as 127.0.0.1:9470".into(),
        // Of a range of clap.
        _ => {
            let (_, range) = said.split_once(" is not in ")?;
            match range.split_once("..")? {
                (least, "") => format!("expected {least} or more"),
                (least, most) => format!("expected {least} to {}", most.trim_start_matches('=')),
            }
        }
    })
}

/// What serde calls a type.
pub fn type_in_words(name: &str) -> String {
    match name {
        "f64" => "a number".into(),
        "socket address" => "an IP address and a port, as 127.0.0.1:9470".into(),
        "IP address" => "an IP address, as 10.9.0.2".into(),
        "IPv4 address" => "an IPv4 address, as 10.9.0.2".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list".into(),
        "path string" | "a string" => "a text".into(),
        other => match other.strip_prefix("struct ") {
            Some(_) => "a table".into(),
            None => other.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use super::*;

    #[test]
    fn words_of_the_standard_library() {
        let of = |error: &dyn std::fmt::Display| in_words(&error.to_string()).unwrap();
        for text in ["", "x", "-1", "256"] {
            assert_eq!(of(&text.parse::<u8>().unwrap_err()), "expected a whole number");
        }
        assert_eq!(of(&"-129".parse::<i8>().unwrap_err()), "expected a whole number");
        assert!(["", "x"].iter().all(|text| of(&text.parse::<f64>().unwrap_err()) == "expected a number"));
        assert!(of(&"x".parse::<IpAddr>().unwrap_err()).contains("an IP address, as"));
        assert!(of(&"x".parse::<Ipv4Addr>().unwrap_err()).contains("an IPv4 address, as"));
        assert!(of(&"x".parse::<SocketAddr>().unwrap_err()).contains("and a port, as"));
        assert_eq!(in_words("0 is not in 1..=65535").unwrap(), "expected 1 to 65535");
        assert_eq!(in_words("0 is not in 1..").unwrap(), "expected 1 or more");
        assert_eq!(in_words("expected a size like 512M or 1G"), None);
    }
}
