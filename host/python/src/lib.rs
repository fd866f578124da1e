//! The compiled part of the Python package; `fadelink/__init__.py` is its public part.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fadelink_receiver::backend::packet::Packet;
#[cfg(feature = "xdp")]
use fadelink_receiver::backend::xdp::Xdp;
use fadelink_receiver::wake::poll;
use fadelink_receiver::{Commander, Error, FebConfig, FebHandle, Inquiry, DEFAULT_RETRIES, DEFAULT_TIMEOUT};
use fadelink_runs::Depth;
use fadelink_wire::MacAddr;
use pyo3::exceptions::{PyBufferError, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Longest wait between two looks for signals.
const LOOK: Duration = Duration::from_millis(100);

fn raise(error: Error) -> PyErr {
    match error {
        Error::Config(text) => PyValueError::new_err(text),
        Error::Io(error) => PyOSError::new_err((error.raw_os_error().unwrap_or(0), error.to_string())),
        Error::Command { .. } => PyTimeoutError::new_err(error.to_string()),
        error => PyRuntimeError::new_err(error.to_string()),
    }
}

fn address(text: &str) -> PyResult<MacAddr> {
    text.parse().map_err(|_| PyValueError::new_err(format!("FEB `{text}`: expected an address like 02:fa:de:00:00:01")))
}

fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let convert = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err(format!("timeout {seconds}: expected seconds, zero or more")))
    };
    seconds.map(convert).transpose()
}

fn counters(py: Python<'_>, entries: Vec<(&'static str, u64)>) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in entries {
        dict.set_item(name, value)?;
    }
    Ok(dict.into())
}

/// The value of an argument that is text, or an error that names it.
fn named<T: FromStr<Err = String>>(text: Option<&str>, name: &str) -> PyResult<Option<T>> {
    let value = text.map(str::parse).transpose();
    value.map_err(|error| PyValueError::new_err(format!("{name} `{}`: {error}", text.unwrap_or_default())))
}

#[cfg(feature = "xdp")]
fn xdp(interface: &str, busy_poll: bool) -> PyResult<fadelink_receiver::Receiver> {
    Ok(fadelink_receiver::Receiver::spawn(Xdp::open(interface, busy_poll)?)?)
}

#[cfg(not(feature = "xdp"))]
fn xdp(_interface: &str, _busy_poll: bool) -> PyResult<fadelink_receiver::Receiver> {
    Err(PyValueError::new_err("backend `xdp`: this package was built without it (cargo feature xdp)"))
}

/// Receives from the FEBs behind one interface.
#[pyclass(frozen)]
struct Receiver(fadelink_receiver::Receiver);

#[pymethods]
impl Receiver {
    #[new]
    #[pyo3(signature = (interface, backend, busy_poll))]
    fn new(interface: &str, backend: &str, busy_poll: bool) -> PyResult<Receiver> {
        let receiver = match backend {
            "packet" => fadelink_receiver::Receiver::spawn(Packet::open(interface)?)?,
            "xdp" => xdp(interface, busy_poll)?,
            "kernel" => fadelink_receiver::Receiver::kernel(interface)?,
            other => return Err(PyValueError::new_err(format!("backend `{other}`: expected packet, xdp or kernel"))),
        };
        Ok(Receiver(receiver))
    }

    fn open(
        &self,
        py: Python<'_>,
        mac: &str,
        ring_packets: u64,
        window: u32,
        first_packet: u32,
        what: (Option<String>, Option<String>, Option<String>),
    ) -> PyResult<Feb> {
        let (protocol, firmware, word_order) = what;
        let config = FebConfig {
            ring_packets,
            window,
            first_packet,
            protocol: named(protocol.as_deref(), "protocol")?,
            firmware: named(firmware.as_deref(), "firmware")?,
            word_order: named(word_order.as_deref(), "word_order")?,
            ..FebConfig::default()
        };
        let mac = address(mac)?;
        let handle = py.detach(|| self.0.open(mac, config)).map_err(raise)?;
        let (commander, wake) = (handle.commander(), handle.as_fd().try_clone_to_owned()?);
        Ok(Feb { handle: Arc::new(Mutex::new(State { handle, lent: 0 })), commander, wake })
    }

    fn counters(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        counters(py, self.0.counters().entries())
    }
}

struct State {
    handle: FebHandle,
    /// Bytes of the block that is out; they are given back when it is released.
    lent: usize,
}

/// A FEB that is open.
#[pyclass(frozen)]
struct Feb {
    handle: Arc<Mutex<State>>,
    commander: Commander,
    /// The handle's event descriptor, to wait for without its lock.
    wake: OwnedFd,
}

fn lock(handle: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    handle.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feb {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.handle)
    }

    /// A block, if so many bytes are there, the transmission has ended, or it is the `last` time to look.
    fn take(&self, threshold: usize, last: bool) -> PyResult<Available> {
        let mut state = self.state();
        if state.lent > 0 {
            return Err(PyBufferError::new_err("read: the previous block is still held; release it first"));
        }
        if !state.handle.arm(threshold) && !last {
            return Ok(Available::Later);
        }
        if !state.handle.wait(1, Some(Duration::ZERO)).map_err(raise)? {
            return Ok(Available::End);
        }
        let data = state.handle.data();
        let (at, bytes) = (data.as_ptr() as usize, data.len());
        state.lent = bytes;
        Ok(Available::Block(Block { handle: self.handle.clone(), at, bytes, released: AtomicBool::new(bytes == 0) }))
    }
}

/// What there is to read.
enum Available {
    Block(Block),
    Later,
    End,
}

/// Does what may take long in a thread of its own, and looks for Python's signals meanwhile: Ctrl-C ends the wait.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let (reply, answer) = sync_channel(1);
    let answer = Mutex::new(answer);
    std::thread::Builder::new().spawn(move || {
        // Nobody may wait for it any more.
        let _ = reply.send(work());
    })?;
    loop {
        match py.detach(|| answer.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK)) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the command has no result")),
        }
    }
}

#[pymethods]
impl Feb {
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle.clone();
        interruptible(py, move || {
            let mut state = lock(&handle);
            if state.lent > 0 {
                return Err(PyBufferError::new_err("start: a block is still held; release it first"));
            }
            state.handle.start().map_err(raise)
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let commander = self.commander.clone();
        interruptible(py, move || commander.command(fadelink_wire::fade10g::CMD_STOP, 0).map(drop).map_err(raise))
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.state().handle.reset()).map_err(raise)
    }

    #[pyo3(signature = (code, argument, timeout_s, retries))]
    fn command(
        &self,
        py: Python<'_>,
        code: u16,
        argument: u32,
        timeout_s: Option<f64>,
        retries: Option<u32>,
    ) -> PyResult<u64> {
        let (timeout, retries) = (timeout(timeout_s)?.unwrap_or(DEFAULT_TIMEOUT), retries.unwrap_or(DEFAULT_RETRIES));
        let commander = self.commander.clone();
        interruptible(py, move || commander.command_with(code, argument, timeout, retries).map_err(raise))
    }

    /// The next block, empty if the time is over; `None` at the end of the transmission.
    fn read(&self, py: Python<'_>, threshold: usize, timeout_s: Option<f64>) -> PyResult<Option<Block>> {
        let end = timeout(timeout_s)?.map(|timeout| Instant::now() + timeout);
        loop {
            let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
            match py.detach(|| self.take(threshold, left.is_zero()))? {
                Available::Block(block) => return Ok(Some(block)),
                Available::End => return Ok(None),
                // Without the lock, so that other threads go on.
                Available::Later => py.detach(|| poll(&mut [(self.wake.as_fd(), false)], Some(left.min(LOOK)))),
            }
            py.check_signals()?;
        }
    }

    /// Asks the descriptor to become readable; true if there is something already.
    fn arm(&self, py: Python<'_>, threshold: usize) -> bool {
        py.detach(|| self.state().handle.arm(threshold))
    }

    fn fileno(&self, py: Python<'_>) -> i32 {
        py.detach(|| self.state().handle.as_fd().as_raw_fd())
    }

    fn counters(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        counters(py, py.detach(|| self.state().handle.counters().entries()))
    }

    fn fill(&self, py: Python<'_>) -> (u64, u64) {
        py.detach(|| self.state().handle.fill())
    }

    /// How the end of the transmission is known; `None` before it.
    fn ending(&self, py: Python<'_>) -> Option<&'static str> {
        py.detach(|| self.state().handle.ending()).name()
    }

    /// Asks the FEB how its transmission has ended, and for RESETs and who sent the last; `None` for what it does not tell.
    fn inquire(&self, py: Python<'_>) -> PyResult<(Option<&'static str>, Option<u8>, Option<String>)> {
        let handle = self.handle.clone();
        interruptible(py, move || {
            let Inquiry { ending, resets, .. } = lock(&handle).handle.inquire().map_err(raise)?;
            let by = resets.and_then(|resets| resets.by);
            Ok((ending.name(), resets.map(|resets| resets.count), by.map(|by| by.to_string())))
        })
    }

    /// Asks the FEB, and tells in words what speaks against the data.
    fn against(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let handle = self.handle.clone();
        interruptible(py, move || {
            let against = lock(&handle).handle.against().map_err(raise)?;
            Ok(against.iter().map(ToString::to_string).collect())
        })
    }

    /// Protocol, firmware and byte order of words on the wire; `None` for what is not known yet.
    fn kind(&self, py: Python<'_>) -> (Option<String>, Option<String>, Option<String>) {
        let kind = py.detach(|| self.state().handle.kind());
        let protocol = kind.map(|kind| kind.protocol.to_string());
        let firmware = kind.and_then(|kind| kind.firmware).map(|firmware| firmware.to_string());
        (protocol, firmware, kind.and_then(|kind| kind.word_order).map(|order| order.to_string()))
    }
}

/// Bytes in the ring, for reading. They stay as they are until the block is released. A view that is kept longer
/// shows what comes there later; the memory itself lives as long as any view.
#[pyclass(frozen)]
struct Block {
    handle: Arc<Mutex<State>>,
    at: usize,
    bytes: usize,
    released: AtomicBool,
}

#[pymethods]
impl Block {
    fn __len__(&self) -> usize {
        self.bytes
    }

    fn release(&self) {
        if !self.released.swap(true, Ordering::Relaxed) {
            let mut state = lock(&self.handle);
            let lent = std::mem::take(&mut state.lent);
            state.handle.release(lent);
        }
    }

    /// # Safety
    /// Called by Python with a place for the view.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let block = slf.get();
        if block.released.load(Ordering::Relaxed) {
            return Err(PyBufferError::new_err("the block was released"));
        }
        // SAFETY: the bytes stay mapped while this object lives, which the view keeps, and are for reading alone.
        let result = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), block.at as *mut c_void, block.bytes as isize, 1, flags)
        };
        if result < 0 {
            Err(PyErr::fetch(slf.py()))
        } else {
            Ok(())
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // Forgotten rather than released: its bytes go back all the same.
        self.release();
    }
}

/// Checks the run in a folder, by names and sizes or by the hashes of all `content`: its state, what is not as it should be, and
/// the bytes that were read.
#[pyfunction]
fn check_run(py: Python<'_>, folder: PathBuf, outside: bool, content: bool) -> PyResult<(String, Vec<String>, u64)> {
    let depth = if content { Depth::Content } else { Depth::Sizes };
    let checked = py.detach(|| fadelink_runs::check(&folder, outside, depth));
    let checked = checked.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((checked.manifest.state().to_owned(), checked.findings, checked.bytes))
}

#[pymodule]
fn _fadelink(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Receiver>()?;
    module.add_class::<Feb>()?;
    module.add_class::<Block>()?;
    module.add_function(wrap_pyfunction!(check_run, module)?)
}
