//! Frames through memory: for tests without a network.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use fadelink_wire::MacAddr;

use super::{Backend, Losses, Send};
use crate::wake::Wake;

#[derive(Debug)]
struct Queue {
    frames: Mutex<VecDeque<Vec<u8>>>,
    wake: Wake,
}

impl Queue {
    fn push(&self, frame: &[u8]) {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).push_back(frame.to_vec());
        self.wake.notify();
    }

    fn take(&self) -> VecDeque<Vec<u8>> {
        self.wake.clear();
        std::mem::take(&mut *self.frames.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One end of a cable in memory.
#[derive(Debug)]
pub struct InProcess {
    local: MacAddr,
    incoming: Arc<Queue>,
    outgoing: Arc<Queue>,
}

impl InProcess {
    /// The two ends of a cable, with their addresses.
    ///
    /// # Errors
    /// The operating system's, of an event descriptor.
    pub fn pair(first: MacAddr, second: MacAddr) -> io::Result<(InProcess, InProcess)> {
        let queue = || Ok::<_, io::Error>(Arc::new(Queue { frames: Mutex::default(), wake: Wake::new()? }));
        let (a, b) = (queue()?, queue()?);
        Ok((
            InProcess { local: first, incoming: a.clone(), outgoing: b.clone() },
            InProcess { local: second, incoming: b, outgoing: a },
        ))
    }
}

impl Backend for InProcess {
    fn local(&self) -> MacAddr {
        self.local
    }

    fn index(&self) -> u32 {
        0
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.incoming.wake.as_fd()
    }

    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize> {
        let frames = self.incoming.take();
        for frame in &frames {
            handler(frame, &mut |answer| self.outgoing.push(answer));
        }
        Ok(frames.len())
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.outgoing.push(frame);
        Ok(())
    }

    fn losses(&mut self) -> Losses {
        Losses::default()
    }
}
