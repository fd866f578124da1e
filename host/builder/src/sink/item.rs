//! The items of event sinks.

use std::sync::Arc;

use fadelink_sinks::{Item, Stopping};

use crate::Event;

/// An event, for several sinks.
#[derive(Debug, Clone)]
pub struct SharedEvent(pub Arc<Event>);

impl Item for SharedEvent {
    const UNIT: &'static str = "events";

    fn amount(&self) -> u64 {
        1
    }

    fn bytes(&self) -> u64 {
        let parts: usize = self.0.parts.iter().map(|part| part.len() + size_of_val(part)).sum();
        (size_of::<Event>() + parts + self.0.missing.len() * 4) as u64
    }
}

/// Settings of the run that sinks need.
#[derive(Debug, Clone)]
pub struct Run {
    /// Source of the events.
    pub builder_id: u32,
    /// Length of a window in ticks.
    pub window_ticks: u32,
    /// Set when the builder is to end.
    pub stopping: Stopping,
    /// Counts a connection to a sink at this TCP port that was turned away.
    pub turned_away: fn(port: u16),
}
