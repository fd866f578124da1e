//! How the transmission of a FEB begins, or goes on.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_receiver::{CommandError, Ending, Error, FebHandle, Resumed};
use fadelink_wire::fade10g::{self, PACKET_BYTES};
use fadelink_wire::Firmware;

use super::super::before::Before;
use super::super::recorder::Recorder;
use super::super::transmissions::{Transmission, Transmissions};
use super::received::Received;
use crate::exit;
use crate::interrupts::Interrupts;
use crate::verdict::End;

/// Time without a frame after which the FEB is taken to have all its confirmations.
pub(super) const QUIET: Duration = Duration::from_millis(60);

/// So many packets come again, or outside the window, before the FEB is taken to have no others: it repeats all of its window
/// (64 packets at most) about equally often, so the ones that are waited for would have come eight times.
const REPEATED: u64 = 8 * 64;

/// The transmission of a FEB that goes on was stopped before the earlier program was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasStopped(pub bool);

/// How the transmission of a FEB begins.
pub(super) struct Begin {
    pub(super) take_over: bool,
    /// Of a run that goes on: bytes of the board's data that are confirmed.
    pub(super) resumed: Option<u64>,
    pub(super) transmissions: Transmissions,
    pub(super) was_stopped: WasStopped,
    pub(super) durable: bool,
    /// Of a run that goes on: the comparison of what it has.
    pub(super) before: Option<Arc<Before>>,
    /// The transmission of an earlier program goes on.
    pub(super) goes_on: bool,
}

/// Silence after which is told that a board is waited for.
const TOLD: Duration = Duration::from_secs(2);

/// Begins a transmission. With a `wait`, of a board that may be switched on later.
fn start(feb: &mut FebHandle, wait: Duration, interrupts: &Interrupts) -> Result<(), Error> {
    if wait.is_zero() {
        return feb.start();
    }
    let (mac, begun, is_told) = (feb.mac(), Instant::now(), Cell::new(false));
    feb.start_when_there(wait, &|| {
        if begun.elapsed() >= TOLD && !is_told.replace(true) {
            tracing::warn!("{mac}: it does not answer; it is asked again for {:.0} s", wait.as_secs_f64());
        }
        !interrupts.must_stop()
    })
}

/// Goes on with a transmission. A board that can tell whether it runs it, and does not answer, is asked again while it is waited
/// for, and then it is an error: it may have kept all that it has.
fn resume(feb: &mut FebHandle, transmission: Resumed, wait: Duration, interrupts: &Interrupts) -> Result<(), Error> {
    let (mac, begun, mut is_told) = (feb.mac(), Instant::now(), false);
    // The end of one that was stopped is asked for already.
    let is_over = || interrupts.must_abort() || (!transmission.stopped && interrupts.must_stop());
    loop {
        match feb.resume(transmission) {
            Err(Error::Command { error: CommandError::Timeout { code: fade10g::CMD_IDENTIFY, .. }, .. })
                if begun.elapsed() < wait && !is_over() =>
            {
                if begun.elapsed() >= TOLD && !std::mem::replace(&mut is_told, true) {
                    tracing::warn!("{mac}: it does not answer; it is asked again for {:.0} s", wait.as_secs_f64());
                }
            }
            result => return result,
        }
    }
}

impl Begin {
    /// Begins a transmission, or goes on with one; or how the end of one is known of which nothing comes any more.
    pub(super) fn at(
        &mut self,
        feb: &mut FebHandle,
        recorder: &mut Recorder,
        outcome: &mut Received,
        (wait, interrupts): (Duration, &Interrupts),
    ) -> anyhow::Result<Option<End>> {
        let WasStopped(was_stopped) = self.was_stopped;
        if let (Some(bytes), Some(newest)) = (self.resumed, self.transmissions.newest()) {
            let Transmission { begin, transmission: number, protocol, .. } = newest;
            let transmission = Resumed { bytes: bytes - begin, stopped: was_stopped, number, protocol };
            match resume(feb, transmission, wait, interrupts) {
                Ok(()) => {
                    self.goes_on = true;
                    return Ok(None);
                }
                // The last packet, which is not full, is recorded.
                Err(Error::Command { error: CommandError::AtItsEnd, .. }) => return Ok(Some(End::Confirmed)),
                // It may have been at its end, or it was reset before.
                Err(Error::Command { error: CommandError::NotRunning(Ending::Unknown), .. }) if was_stopped => {
                    return Ok(Some(End::Silence));
                }
                Err(error @ Error::Command { error: CommandError::NotRunning(_), .. }) if was_stopped => {
                    outcome.board = Some(exit::in_words(&error.into()));
                    return Ok(Some(End::Confirmed));
                }
                Err(error @ Error::Command { error: CommandError::NotRunning(_), .. }) => {
                    tracing::warn!("{}: {error}; a new one begins behind byte {bytes}", feb.mac());
                }
                Err(error) => return Err(error).context("going on"),
            }
            recorder.restart();
        } else if was_stopped {
            // None was begun, and none is wanted.
            return Ok(Some(End::Silence));
        }
        if self.take_over {
            feb.reset()?;
            feb.serve(QUIET);
        }
        // Before START: a program that goes on must know of it. A START that is not answered may be obeyed later, so it stays there.
        self.transmissions.begin(recorder.bytes()).context("the list of transmissions")?;
        start(feb, wait, interrupts).context("START (if the board sends to another computer: --take-over)")?;
        self.note(feb)?;
        if feb.counters().interrupted > 0 && !self.take_over {
            tracing::warn!(
                "{}: an earlier transmission was still running (its reader was killed?); it was aborted, \
                 what its reader wrote is intact, and a new one begins with word 0",
                feb.mac()
            );
        }
        Ok(None)
    }

    /// It goes on, and the board does not tell which one it is.
    pub(super) fn is_unproven(&self, feb: &FebHandle) -> bool {
        self.goes_on && feb.kind().and_then(|kind| kind.firmware) != Some(Firmware::Fadelink)
    }

    /// Why nothing comes of a transmission that goes on, though the board sends: it sends what is behind that. `too_long`: nobody
    /// waits for it any more.
    pub(super) fn is_ahead(&self, feb: &FebHandle, recorder: &Recorder, too_long: bool) -> Option<String> {
        let end = recorder.bytes();
        let before = self.before.as_ref().filter(|_| self.goes_on && self.resumed == Some(end))?;
        let newest = self.transmissions.newest()?;
        // The least that is certain. It sends no packet that its window does not have.
        let confirmed = newest.begin + feb.confirmed() * PACKET_BYTES as u64;
        let counters = feb.counters();
        let repeated = counters.duplicates + counters.protocol_errors;
        let has_come = counters.packets + counters.protocol_errors > 0;
        let is_behind = repeated >= REPEATED || (too_long && has_come && repeated > 0);
        (confirmed > end || is_behind).then(|| {
            format!(
                "the board sends words behind those that it has confirmation of, and {} alone: expected {} bytes or more, those from byte \
                 {end} on are missing",
                before.place(),
                confirmed.max(end + 1)
            )
        })
    }

    /// Before data of a transmission is recorded: a program that goes on tells it from others by its number, and compares the CRC of
    /// its words, which comes before the last of them.
    pub(super) fn note(&mut self, feb: &FebHandle) -> anyhow::Result<()> {
        let note = |all: &mut Transmissions| {
            all.has_begun(feb.transmission(), feb.kind().map(|kind| kind.protocol))?;
            feb.crc().map_or(Ok(()), |crc| all.has_crc(crc))
        };
        note(&mut self.transmissions).context("the list of transmissions")
    }
}
