//! Reads the arguments; what is wrong with them is told in one line, as everywhere: the option, its value, what was expected.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error, FromArgMatches};

use crate::expected;

/// Reads them.
///
/// # Errors
/// Those of clap.
pub fn parse<T: FromArgMatches>(command: Command) -> Result<T, Error> {
    let command = take_negative_numbers(command);
    T::from_arg_matches(&command.try_get_matches()?)
}

/// What refuses a number names it, rather than take it for an option.
fn take_negative_numbers(command: Command) -> Command {
    let takes = |arg: &clap::Arg| arg.get_num_args().is_none_or(|count| count.takes_values());
    command
        .mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(take_negative_numbers)
}

/// The error of an option that cannot be beside another one.
pub fn excluded(name: &str, by: &str) -> Error {
    let mut error = Error::new(ErrorKind::ArgumentConflict);
    for (kind, option) in [(ContextKind::InvalidArg, name), (ContextKind::PriorArg, by)] {
        error.insert(kind, ContextValue::String(option.into()));
    }
    error
}

/// The texts of a context.
fn texts(error: &Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The option alone, of one with the name of its value.
fn option(text: &str) -> &str {
    text.split([' ', '=']).next().unwrap_or(text)
}

/// One of these.
fn one_of(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Where clap says it in other words than the rest of the program.
fn in_own_words(error: &Error) -> Option<String> {
    let first = |kind| texts(error, kind).first().copied();
    let name = option(first(ContextKind::InvalidArg)?);
    let value = || first(ContextKind::InvalidValue);
    match error.kind() {
        ErrorKind::ArgumentConflict => {
            let others: Vec<_> = texts(error, ContextKind::PriorArg).into_iter().map(option).collect();
            match others.as_slice() {
                [other] if *other == name => Some(format!("{name}: expected once")),
                [] => None,
                others => Some(format!("{name}: not with {}", others.join(" or "))),
            }
        }
        ErrorKind::ValueValidation => {
            let said = std::error::Error::source(error)?.to_string();
            Some(format!("{name} {}: {}", value()?, expected::in_words(&said).unwrap_or(said)))
        }
        ErrorKind::InvalidValue => {
            let known = texts(error, ContextKind::ValidValue);
            let expected = if known.is_empty() { "a value".into() } else { one_of(&known) };
            Some(match value()? {
                "" => format!("{name}: expected {expected}"),
                value => format!("{name} {value}: expected {expected}"),
            })
        }
        _ => None,
    }
}

/// What is wrong with the arguments, in one line, with clap's tip, and where the usage of `command` is explained.
pub fn in_one_line(error: &Error, command: &Command) -> String {
    let text = error.to_string();
    let message: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = message.join(" ");
    let message = in_own_words(error).unwrap_or_else(|| message.strip_prefix("error: ").unwrap_or(&message).to_owned());
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map_or(String::new(), |tip| format!("; {tip}"));
    // No command has a name that is not UTF-8.
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let named = words.find(|word| command.find_subcommand(word).is_some());
    let named = named.map_or(String::new(), |name| format!(" {name}"));
    format!("{message}{tip}; see `fadelink{named} --help`")
}

#[cfg(test)]
mod tests {
    use clap::{value_parser, Arg, ArgAction};

    use super::*;

    fn said(words: &[&str]) -> String {
        let arg = |name: &'static str| Arg::new(name).long(name);
        let command = Command::new("x")
            .arg(arg("tcp").value_name("PORT").value_parser(value_parser!(u16).range(1..)).conflicts_with("udp"))
            .arg(arg("udp").value_name("PORT"))
            .arg(arg("backend").value_parser(["packet", "xdp", "kernel"]))
            .arg(arg("listen").value_parser(value_parser!(std::net::IpAddr)))
            .arg(arg("json").action(ArgAction::SetTrue));
        let command = take_negative_numbers(command);
        let error = command.try_get_matches_from([&["x"], words].concat()).unwrap_err();
        in_own_words(&error).unwrap_or_else(|| error.to_string())
    }

    #[test]
    fn each_error_names_option_value_and_expectation() {
        assert_eq!(said(&["--tcp", "1", "--udp", "2"]), "--tcp: not with --udp");
        assert_eq!(said(&["--udp", "2", "--udp", "2"]), "--udp: expected once");
        assert_eq!(said(&["--tcp", "70000"]), "--tcp 70000: expected 1 to 65535");
        assert_eq!(said(&["--tcp", "-1"]), "--tcp -1: expected 1 to 65535");
        assert_eq!(said(&["--tcp", "x"]), "--tcp x: expected a whole number");
        assert_eq!(said(&["--backend", "xpd"]), "--backend xpd: expected packet, xdp or kernel");
        assert_eq!(said(&["--backend"]), "--backend: expected packet, xdp or kernel");
        assert_eq!(said(&["--listen", "here"]), "--listen here: expected an IP address, as 10.9.0.2");
        assert!(said(&["--nothing"]).contains("unexpected argument '--nothing' found"));
        let error = excluded("--iface", "--udp");
        assert_eq!(in_own_words(&error).unwrap(), "--iface: not with --udp");
    }
}
