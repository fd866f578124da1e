//! What a sink of events is, and what it is told.

use std::sync::atomic::AtomicBool;

use crate::Event;

pub(super) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Takes events, in order.
pub(super) trait Sink: Send {
    /// Takes the next event.
    fn write(&mut self, event: &Event) -> Result<()>;
    /// Writes what waits in memory: called at the end, and when nothing has come for a while.
    fn flush(&mut self) -> Result<()>;
    /// No more comes.
    fn finish(&mut self) -> Result<()>;
}

/// What sinks are told of the run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Source of the events.
    pub builder_id: u32,
    /// Length of a window in ticks.
    pub window_ticks: u32,
    /// Set when the builder is to end: then nobody is waited for without end.
    pub stopping: &'static AtomicBool,
}
