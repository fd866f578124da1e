//! The sinks of a stream until they are done. They finish in a thread of their own, so that other streams go on being
//! drained.

use std::thread::JoinHandle;

use fadelink_sinks::{Block, Outlets, Report};

/// Reports of the sinks, and the error of the first one that failed.
type Result = (Vec<Report>, Option<String>);

pub enum Closing {
    Open(Outlets<Block>),
    Finishing(JoinHandle<Result>),
    Closed(Vec<Report>, Option<String>),
}

impl Closing {
    /// What is open begins to finish. `complete`: the stream has ended as it should.
    pub fn finish(&mut self, complete: bool) {
        self.change(|before| {
            let Closing::Open(mut outlets) = before else { return before };
            let finish = move || {
                let error = outlets.finish(complete).err().map(|error| error.to_string());
                (outlets.reports(), error)
            };
            match std::thread::Builder::new().name("finish".into()).spawn(finish) {
                Ok(thread) => Closing::Finishing(thread),
                // What was to finish them has finished them as it was dropped.
                Err(error) => Closing::Closed(Vec::new(), Some(format!("finishing the sinks: {error}"))),
            }
        });
    }

    /// Waits until the sinks that finish are done.
    pub fn join(&mut self) {
        self.change(|before| {
            let Closing::Finishing(thread) = before else { return before };
            let (reports, error) = thread.join().unwrap_or((Vec::new(), Some("finishing the sinks panicked".into())));
            Closing::Closed(reports, error)
        });
    }

    /// Each state is used up by the next one, or returned as it is.
    fn change(&mut self, next: impl FnOnce(Closing) -> Closing) {
        *self = next(std::mem::replace(self, Closing::Closed(Vec::new(), None)));
    }

    /// True if [`Self::join`] does not wait.
    pub fn is_done(&self) -> bool {
        !matches!(self, Closing::Finishing(thread) if !thread.is_finished())
    }

    pub fn is_open(&self) -> bool {
        matches!(self, Closing::Open(_))
    }

    /// False: a sink has failed.
    pub fn is_well(&self) -> bool {
        match self {
            Closing::Open(outlets) => outlets.are_well(),
            Closing::Finishing(_) => true,
            Closing::Closed(_, error) => error.is_none(),
        }
    }

    pub fn reports(&self) -> Vec<Report> {
        match self {
            Closing::Open(outlets) => outlets.reports(),
            Closing::Finishing(_) => Vec::new(),
            Closing::Closed(reports, _) => reports.clone(),
        }
    }

    pub fn error(&self) -> Option<&str> {
        match self {
            Closing::Closed(_, error) => error.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream may be done before the run ends, which waits for all of them.
    #[test]
    fn reports_and_error_stay_when_it_is_joined_again() {
        let result = (vec![Report { sink: "file:x".into(), ..Report::default() }], Some("the disk is full".into()));
        let mut closing = Closing::Finishing(std::thread::spawn(|| result));
        for _ in 0..2 {
            closing.join();
            assert_eq!(closing.reports()[0].sink, "file:x");
            assert_eq!(closing.error(), Some("the disk is full"));
            assert!(!closing.is_well() && closing.is_done());
        }
    }
}
