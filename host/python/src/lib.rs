//! The compiled part of the Python package; `fadelink/__init__.py` is its public part.

use std::path::PathBuf;
use std::str::FromStr;

use fadelink_runs::Depth;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

mod board;
mod failure;
mod feb;
mod receiver;
mod threads;

use failure::{Failure, Outcome};
use threads::detach;

fn counters(py: Python<'_>, entries: Vec<(&'static str, u64)>) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in entries {
        dict.set_item(name, value)?;
    }
    Ok(dict.into())
}

/// The value of an argument that is text, or an error that names it.
fn named<T: FromStr<Err = String>>(text: Option<&str>, name: &str) -> Outcome<Option<T>> {
    let value = text.map(str::parse).transpose();
    value.map_err(|error| Failure::Value(format!("{name} `{}`: {error}", text.unwrap_or_default())))
}

/// Checks the run in a folder, by names and sizes or by the hashes of all `content`: its state, what is not as it should be, and
/// the bytes that were read.
#[pyfunction]
fn check_run(py: Python<'_>, folder: PathBuf, outside: bool, content: bool) -> PyResult<(String, Vec<String>, u64)> {
    let depth = if content { Depth::Content } else { Depth::Sizes };
    let checked = detach(py, || fadelink_runs::check(&folder, outside, depth));
    let checked = checked.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((checked.manifest.state().to_owned(), checked.findings, checked.bytes))
}

/// What stands for `{stream}` in the paths of a board, by its report, which is JSON.
#[pyfunction]
fn stream_in_names(report: &str) -> PyResult<String> {
    let report = serde_json::from_str(report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(fadelink_runs::stream(&report))
}

/// Closes all that is open: Python is about to end.
#[pyfunction]
fn close_all(py: Python<'_>) {
    detach(py, board::close_all);
    threads::end(py);
}

#[pymodule]
fn _fadelink(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<receiver::Receiver>()?;
    module.add_class::<feb::Feb>()?;
    module.add_class::<feb::Block>()?;
    module.add_function(wrap_pyfunction!(check_run, module)?)?;
    module.add_function(wrap_pyfunction!(close_all, module)?)?;
    module.add_function(wrap_pyfunction!(stream_in_names, module)?)
}
