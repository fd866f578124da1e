//! The run that is played back, and what of it is not as it should be.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fadelink_runs::Scope;

/// What may be read, and what was found.
pub struct Source {
    pub scope: Scope,
    doubts: Mutex<BTreeSet<String>>,
}

impl Source {
    /// Of the run in this folder.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(run: &Path, outside: bool) -> std::io::Result<Source> {
        Ok(Source { scope: Scope::new(run, outside)?, doubts: Mutex::default() })
    }

    /// This is not as it was received: it is told once.
    pub fn doubt(&self, what: &str) {
        if self.doubts.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned()) {
            tracing::error!("{what}");
        }
    }

    /// The user has ended the program before this board had sent what the receiver wanted.
    pub fn interrupted(&self, name: &str) {
        self.doubt(&format!("{name}: interrupted before all was played"));
    }

    /// Nothing is known against what was played.
    pub fn is_good(&self) -> bool {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}
