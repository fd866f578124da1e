//! A receiver, as Python sees it.

use std::sync::Arc;

use fadelink_receiver::backend::packet::Packet;
#[cfg(feature = "xdp")]
use fadelink_receiver::backend::xdp::Xdp;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::board::Link;
use crate::counters;
use crate::failure::{Failure, Outcome};
use crate::threads::detach;

#[cfg(feature = "xdp")]
fn xdp(interface: &str, busy_poll: bool) -> Outcome<fadelink_receiver::Receiver> {
    Ok(fadelink_receiver::Receiver::spawn(Xdp::open(interface, busy_poll)?)?)
}

#[cfg(not(feature = "xdp"))]
fn xdp(_interface: &str, _busy_poll: bool) -> Outcome<fadelink_receiver::Receiver> {
    Err(Failure::Value("backend `xdp`: this package was built without it (cargo feature xdp)".into()))
}

fn open(interface: &str, backend: &str, busy_poll: bool) -> Outcome<fadelink_receiver::Receiver> {
    match backend {
        "packet" => Ok(fadelink_receiver::Receiver::spawn(Packet::open(interface)?)?),
        "xdp" => xdp(interface, busy_poll),
        "kernel" => Ok(fadelink_receiver::Receiver::kernel(interface)?),
        other => Err(Failure::Value(format!("backend `{other}`: expected packet, xdp or kernel"))),
    }
}

/// Receives from the FEBs behind one interface.
#[pyclass(frozen, subclass)]
pub(crate) struct Receiver(Arc<Link>);

impl Receiver {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.0
    }
}

#[pymethods]
impl Receiver {
    #[new]
    #[pyo3(signature = (interface, backend = "packet", busy_poll = false))]
    fn new(py: Python<'_>, interface: &str, backend: &str, busy_poll: bool) -> PyResult<Receiver> {
        let receiver = detach(py, || open(interface, backend, busy_poll)).map_err(|failure| failure.raise(py))?;
        Ok(Receiver(Link::new(receiver)))
    }

    /// Closes it and its FEBs; again does nothing.
    fn close(&self, py: Python<'_>) {
        detach(py, || self.0.close());
    }

    /// True behind `close`, and in a forked process.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        detach(py, || self.0.is_closed())
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let link = slf.get().0.clone();
        detach(slf.py(), || link.with(|_| Ok(()))).map_err(|failure| failure.raise(slf.py()))?;
        Ok(slf)
    }

    /// Here and not in Python, where Ctrl-C might come before it.
    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn _counters(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let entries = detach(py, || self.0.with(|receiver| Ok(receiver.counters().entries())));
        counters(py, entries.map_err(|failure| failure.raise(py))?)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // A child of its process leaves it as it is. Else it ends with the last of its FEBs.
        if !self.0.is_here() {
            std::mem::forget(self.0.clone());
        }
    }
}
