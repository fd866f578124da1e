//! Exit statuses.

use std::io;
use std::process::ExitCode;

use fadelink_receiver::{CommandError, Error};

use crate::log;
use crate::print::Unprinted;

/// Each exit status, and its meaning.
pub const STATUSES: &[(&str, &str)] = &[
    ("0", "done; where data is received or checked: it is complete and, if asked, verified"),
    ("1", "failed"),
    ("2", "wrong arguments"),
    ("3", "data is not complete, or wrong"),
];
/// Exit status of wrong arguments.
pub const USAGE: u8 = 2;
/// Exit status of data that is not complete or not what the pattern says.
pub const INCOMPLETE: u8 = 3;

/// Of data that is `good`: all of it is there and, if asked, verified.
pub fn of_data(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPLETE)
    }
}

/// What to do about an error, if more can be said than the error says itself.
fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let command = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(Error::Command { error, .. }) => Some(error),
        _ => None,
    });
    match command {
        Some(CommandError::Timeout { .. }) => {
            return Some("check the power of the board, the cable and the address (`fadelink discover` lists boards)");
        }
        Some(CommandError::NotSent { .. }) => {
            return Some(
                "check the power of the board, the cable and the address (`fadelink discover` lists boards); an idle \
                 board with a published FADE v1 core answers nothing, and has no commands",
            );
        }
        _ => {}
    }
    let error = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>())?;
    error.raw_os_error()?;
    Some(match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses this port (`ss -lntup` lists them): end it, or choose another"
        }
        io::ErrorKind::AddrNotAvailable => "this computer does not have this address; `ip address` lists those it has",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "this computer has no address in the network of the board; `ip address` lists those it has"
        }
        io::ErrorKind::PermissionDenied => "this user has no right to it; run the command as root, or choose another",
        io::ErrorKind::NotFound => "check the name",
        _ => return None,
    })
}

/// What happened, and what to do.
pub fn in_words(error: &anyhow::Error) -> String {
    advice(error).map_or_else(|| format!("{error:#}"), |advice| format!("{error:#}; {advice}"))
}

/// Says why an action failed, and what to do.
pub fn of_error(error: &anyhow::Error) -> ExitCode {
    if error.is::<Unprinted>() {
        // The end of the program tells it, if it is to be told.
        return ExitCode::SUCCESS;
    }
    tracing::error!("{}", in_words(error));
    ExitCode::from(if error.is::<Usage>() { USAGE } else { 1 })
}

/// Says that the result was not printed. A `status` that is worse stays: it is the one of the work.
pub fn of_print(status: ExitCode, error: &io::Error) -> ExitCode {
    log::error(&format!("standard output: {error}: the result was not printed whole"));
    if status == ExitCode::SUCCESS {
        ExitCode::FAILURE
    } else {
        status
    }
}

/// Wrong arguments that only show when they are looked at together.
#[derive(Debug)]
pub struct Usage(pub String);

impl Usage {
    /// Takes an error for wrong arguments.
    pub fn of(error: anyhow::Error) -> anyhow::Error {
        Usage(format!("{error:#}")).into()
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
