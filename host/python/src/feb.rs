//! A FEB, and the blocks of it, as Python sees them.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fadelink_receiver::wake::poll;
use fadelink_receiver::{FebConfig, Inquiry, View, DEFAULT_RETRIES, DEFAULT_TIMEOUT};
use fadelink_wire::fade10g::CMD_STOP;
use fadelink_wire::MacAddr;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::board::{lock, Available, SharedFeb};
use crate::failure::{Failure, Outcome};
use crate::receiver::Receiver;
use crate::threads::detach;
use crate::{counters, named};

/// Longest wait between two looks for signals.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time-out: a year.
const LONGEST: Duration = Duration::from_secs(366 * 86400);

fn address(text: &str) -> Outcome<MacAddr> {
    let wrong = |_| Failure::Value(format!("FEB `{text}`: expected a unicast address like 02:fa:de:00:00:01"));
    text.parse().map_err(wrong)
}

fn timeout(seconds: Option<f64>) -> Outcome<Option<Duration>> {
    let convert = |seconds| {
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= LONGEST);
        let wrong =
            || Failure::Value(format!("timeout {seconds}: expected 0 to {} seconds, or None", LONGEST.as_secs()));
        time.ok_or_else(wrong)
    };
    seconds.map(convert).transpose()
}

/// Does what may take long in a thread of its own, and looks for Python's signals meanwhile: Ctrl-C ends the wait.
fn interruptible<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> Outcome<T> + Send + 'static) -> PyResult<T> {
    let (reply, answer) = sync_channel(1);
    let answer = Mutex::new(answer);
    std::thread::Builder::new().spawn(move || {
        // Nobody may wait for it any more.
        let _ = reply.send(work());
    })?;
    loop {
        match detach(py, || lock(&answer).recv_timeout(LOOK)) {
            Ok(result) => return result.map_err(|failure| failure.raise(py)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::Lost.raise(py)),
        }
    }
}

/// A FEB that is open, or was.
#[pyclass(frozen, subclass)]
pub(crate) struct Feb(Arc<SharedFeb>);

impl Feb {
    /// Does what takes no time with the FEB, without Python's lock.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&SharedFeb) -> Outcome<T> + Send) -> PyResult<T> {
        detach(py, || work(&self.0)).map_err(|failure| failure.raise(py))
    }

    /// Does what may take long with it.
    fn interruptible<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&SharedFeb) -> Outcome<T> + Send + 'static,
    ) -> PyResult<T> {
        // A child of its process makes no thread for it.
        self.0.check().map_err(|failure| failure.raise(py))?;
        let board = self.0.clone();
        interruptible(py, move || work(&board))
    }
}

#[pymethods]
impl Feb {
    #[new]
    fn new(
        py: Python<'_>,
        receiver: &Receiver,
        mac: &str,
        ring_packets: u64,
        window: u32,
        first_packet: u32,
        what: (Option<String>, Option<String>, Option<String>),
    ) -> PyResult<Feb> {
        let (protocol, firmware, word_order) = what;
        let open = || {
            let config = FebConfig {
                ring_packets,
                window,
                first_packet,
                protocol: named(protocol.as_deref(), "protocol")?,
                firmware: named(firmware.as_deref(), "firmware")?,
                word_order: named(word_order.as_deref(), "word_order")?,
                ..FebConfig::default()
            };
            receiver.link().open(address(mac)?, config)
        };
        detach(py, open).map(Feb).map_err(|failure| failure.raise(py))
    }

    /// Closes it; again does nothing.
    fn close(&self, py: Python<'_>) {
        detach(py, || self.0.close());
    }

    /// True behind `close`, and in a forked process.
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().0.check().map_err(|failure| failure.raise(slf.py()))?;
        Ok(slf)
    }

    /// Here and not in Python, where Ctrl-C might come before it.
    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn _start(&self, py: Python<'_>) -> PyResult<()> {
        self.interruptible(py, |board| {
            board.attempt_free("start: a block is still held", |state| {
                state.end = None;
                state.handle.start()
            })
        })
    }

    fn _stop(&self, py: Python<'_>) -> PyResult<()> {
        self.interruptible(py, |board| board.command(|commander| commander.command(CMD_STOP, 0)).map(drop))
    }

    fn _reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |board| board.attempt(|state| state.handle.reset()))
    }

    fn _command(
        &self,
        py: Python<'_>,
        code: u16,
        argument: u32,
        timeout_s: Option<f64>,
        retries: Option<u32>,
    ) -> PyResult<u64> {
        let patience = timeout(timeout_s).map_err(|failure| failure.raise(py))?.unwrap_or(DEFAULT_TIMEOUT);
        let retries = retries.unwrap_or(DEFAULT_RETRIES);
        self.interruptible(py, move |board| {
            board.command(|commander| commander.command_with(code, argument, patience, retries))
        })
    }

    /// The next block, empty if the time is over; `None` at the end of the transmission.
    fn _read(&self, py: Python<'_>, threshold: usize, timeout_s: Option<f64>) -> PyResult<Option<Block>> {
        let timeout = timeout(timeout_s).map_err(|failure| failure.raise(py))?;
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let waits = self.0.waits().map_err(|failure| failure.raise(py))?;
        loop {
            let left = end.map_or(LOOK, |end| end.saturating_duration_since(Instant::now()));
            match self.with(py, |board| board.take(threshold, left.is_zero()))? {
                Available::Block(view) => {
                    let released = AtomicBool::new(view.bytes() == 0);
                    return Ok(Some(Block { board: self.0.clone(), view, released }));
                }
                Available::End => return Ok(None),
                // Without the lock, so that other threads go on.
                Available::Later => detach(py, || poll(&mut [(waits.as_fd(), false)], Some(left.min(LOOK)))),
            }
            py.check_signals()?;
        }
    }

    /// Asks the descriptor to become readable; true if there is something already.
    fn _arm(&self, py: Python<'_>, threshold: usize) -> PyResult<bool> {
        self.with(py, |board| board.arm(threshold))
    }

    fn _fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |board| Ok(board.waits()?.as_fd().as_raw_fd()))
    }

    fn _counters(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        counters(py, self.with(py, |board| board.with(|state| Ok(state.handle.counters().entries())))?)
    }

    fn _fill(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.with(py, |board| board.with(|state| Ok(state.handle.fill())))
    }

    /// Bytes of filler behind the last word, as the FEB has told them, and last bytes that may be filler where it does not.
    fn _filler(&self, py: Python<'_>) -> PyResult<(Option<usize>, usize)> {
        let end = self.with(py, |board| board.with(|state| Ok(state.end)))?;
        Ok(end.map_or((None, 0), |end| (end.filler, end.possible)))
    }

    /// How the end of the transmission is known; `None` before it.
    fn _ending(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.with(py, |board| board.with(|state| Ok(state.handle.ending().name())))
    }

    /// Asks the FEB how its transmission has ended, and for RESETs and who sent the last; `None` for what it does not tell.
    fn _inquire(&self, py: Python<'_>) -> PyResult<(Option<&'static str>, Option<u8>, Option<String>)> {
        self.interruptible(py, |board| {
            let Inquiry { ending, resets, .. } = board.inquire()?;
            let by = resets.and_then(|resets| resets.by);
            Ok((ending.name(), resets.map(|resets| resets.count), by.map(|by| by.to_string())))
        })
    }

    /// Asks the FEB, and tells in words what speaks against the data.
    fn _against(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.interruptible(py, |board| {
            let told = board.inquire()?;
            board.with(|state| Ok(state.handle.against_of(&told).iter().map(ToString::to_string).collect()))
        })
    }

    /// Protocol, firmware and byte order of words on the wire; `None` for what is not known yet.
    fn _kind(&self, py: Python<'_>) -> PyResult<(Option<String>, Option<String>, Option<String>)> {
        let kind = self.with(py, |board| board.with(|state| Ok(state.handle.kind())))?;
        let protocol = kind.map(|kind| kind.protocol.to_string());
        let firmware = kind.and_then(|kind| kind.firmware).map(|firmware| firmware.to_string());
        Ok((protocol, firmware, kind.and_then(|kind| kind.word_order).map(|order| order.to_string())))
    }
}

impl Drop for Feb {
    fn drop(&mut self) {
        if self.0.is_here() {
            // Though somebody still has a block of it.
            self.0.close();
        } else {
            std::mem::forget(self.0.clone());
        }
    }
}

/// Bytes in the ring, for reading. They stay as they are until the block is released. A view that is kept longer
/// shows what comes there later; the memory itself lives as long as any view, also when the FEB is closed.
#[pyclass(frozen)]
pub(crate) struct Block {
    board: Arc<SharedFeb>,
    view: View,
    released: AtomicBool,
}

#[pymethods]
impl Block {
    fn __len__(&self) -> usize {
        self.view.bytes()
    }

    fn release(&self) {
        if !self.released.swap(true, Ordering::Relaxed) {
            self.board.give_back();
        }
    }

    /// # Safety
    /// Called by Python with a place for the view.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let block = slf.get();
        block.board.check().map_err(|failure| failure.raise(slf.py()))?;
        if block.released.load(Ordering::Relaxed) {
            return Err(Failure::Released.raise(slf.py()));
        }
        let (at, bytes) = (block.view.address() as *mut c_void, block.view.bytes() as isize);
        // SAFETY: the bytes stay mapped while this object lives, which the view keeps, and are for reading alone.
        let result = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), at, bytes, 1, flags) };
        if result < 0 {
            Err(PyErr::fetch(slf.py()))
        } else {
            Ok(())
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.board.is_here() {
            // Forgotten rather than released: its bytes go back all the same.
            self.release();
        } else {
            std::mem::forget(self.board.clone());
        }
    }
}
