//! What has failed, and the exception of Python for it (`fadelink/_errors.py`).

use std::io;

use fadelink_receiver::{CommandError, Error, Holder};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use crate::threads::detach;

/// What has failed; made without Python, which is not there in all threads.
pub(crate) enum Failure {
    Receiver(Error),
    /// What is to be used was closed: its name.
    Closed(&'static str),
    /// It belongs to the process that this one was forked from: its name.
    Forked(&'static str),
    /// A block is held: what cannot be done.
    Held(&'static str),
    /// A block was released, and is used.
    Released,
    /// A value that is not as it should be.
    Value(String),
    /// A thread has ended without a result.
    Lost,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Receiver(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Receiver(Error::Io(error))
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || Ok(py.import("fadelink._errors")?.unbind())).map(|module| module.bind(py))
}

/// The number of an error of the operating system, which may have come with a text alone.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::AlreadyExists => libc::EEXIST,
        io::ErrorKind::ResourceBusy => libc::EBUSY,
        io::ErrorKind::AddrInUse => libc::EADDRINUSE,
        io::ErrorKind::OutOfMemory => libc::ENOMEM,
        io::ErrorKind::NetworkDown => libc::ENETDOWN,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
        _ => 0,
    })
}

/// Process and name.
fn holder(holder: &Holder) -> (Option<u32>, Option<String>) {
    match holder {
        Holder::This => (Some(std::process::id()), None),
        Holder::Program { pid, .. } if *pid == std::process::id() => (Some(*pid), None),
        Holder::Program { pid, name } => (Some(*pid), Some(name.clone())),
        Holder::Unknown => (None, None),
    }
}

/// The exception `name` with this text, and what else is known.
fn with<'py>(py: Python<'py>, name: &str, text: String, more: &[(&str, Bound<'py, PyAny>)]) -> PyResult<PyErr> {
    let error = module(py)?.getattr(name)?.call1((text,))?;
    for (attribute, value) in more {
        error.setattr(*attribute, value)?;
    }
    Ok(PyErr::from_value(error))
}

fn command(py: Python<'_>, text: String, error: &CommandError) -> PyResult<PyErr> {
    let any = |number: u64| -> PyResult<_> { Ok(number.into_pyobject(py)?.into_any()) };
    let unanswered = |name, code: u16, attempts: u32| {
        with(py, name, text.clone(), &[("code", any(code.into())?), ("attempts", any(attempts.into())?)])
    };
    match error {
        CommandError::Timeout { code, attempts } => unanswered("NoAnswerError", *code, *attempts),
        CommandError::NotSent { code, attempts } => unanswered("NotSentError", *code, *attempts),
        CommandError::GivenUp => with(py, "NoAnswerError", text, &[]),
        CommandError::StillRunning(status) => with(py, "RunningError", text, &[("status", any(*status)?)]),
        CommandError::SendsOn => with(py, "RunningError", text, &[]),
        CommandError::NotRunning(_) | CommandError::AtItsEnd => with(py, "NotRunningError", text, &[]),
        CommandError::Closed => with(py, "ClosedError", text, &[]),
        CommandError::Busy(by) => {
            with(py, "CommandsHeldError", text, &[("_holder", holder(by).into_pyobject(py)?.into_any())])
        }
        CommandError::NoCommands(code) => with(py, "NoCommandsError", text, &[("code", any((*code).into())?)]),
        CommandError::BadCode(code) => with(py, "CommandCodeError", text, &[("code", any((*code).into())?)]),
    }
}

fn receiver(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let text = error.to_string();
    match error {
        Error::Config(_) => with(py, "ConfigError", text, &[]),
        Error::Io(error) => {
            let made = module(py)?.getattr("of_system")?.call1((number(error), text))?;
            Ok(PyErr::from_value(made))
        }
        Error::AlreadyOpen(_, by) => {
            with(py, "HeldError", text, &[("_holder", holder(by).into_pyobject(py)?.into_any())])
        }
        Error::Command { error, .. } => command(py, text, error),
        Error::Aborted(_, ending, by) => {
            let ending = ending.name().into_pyobject(py)?.into_any();
            let by = by.map(|by| by.to_string()).into_pyobject(py)?.into_any();
            with(py, "AbortedError", text, &[("ending", ending), ("reset_by", by)])
        }
        Error::Lent(..) => with(py, "BlockHeldError", text, &[]),
        Error::Failed(_) => with(py, "FailedError", text, &[]),
    }
}

impl Failure {
    /// As an exception.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        // One that asks again and again does not run Python's code while Python ends.
        detach(py, || ());
        let made = match self {
            Failure::Receiver(error) => receiver(py, &error),
            Failure::Closed(what) => with(py, "ClosedError", format!("the {what} is closed"), &[]),
            Failure::Forked(what) => {
                let text =
                    format!("the {what} is one of the process that this one was forked from; open your own here");
                with(py, "ForkedError", text, &[])
            }
            Failure::Held(what) => with(py, "BlockHeldError", format!("{what}; release it first"), &[]),
            Failure::Released => with(py, "BlockReleasedError", "the block was released; read another one".into(), &[]),
            Failure::Value(text) => with(py, "ConfigError", text, &[]),
            Failure::Lost => with(py, "FailedError", "the command has no result".into(), &[]),
        };
        made.unwrap_or_else(|error| error)
    }
}
