//! Exit statuses: 0 done, 1 failed, 2 wrong arguments, 3 data incomplete or wrong.

use std::process::ExitCode;

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

/// Tells why an action failed.
pub fn of_error(error: &anyhow::Error) -> ExitCode {
    tracing::error!("{error:#}");
    ExitCode::from(if error.is::<Usage>() { USAGE } else { 1 })
}

/// Wrong arguments that only show when they are looked at together.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
