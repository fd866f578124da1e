//! Backends move frames between the engine and the wire.

use std::io;
use std::os::fd::BorrowedFd;

use fadelink_wire::MacAddr;

use crate::interface::Obstacle;

pub mod in_process;
pub mod packet;
#[cfg(feature = "xdp")]
pub mod xdp;

/// Frames handed out in one call, so that commands are not kept waiting.
const BATCH: usize = 64;

/// Sends one frame.
pub type Send<'a> = dyn FnMut(&[u8]) + 'a;

/// Moves frames; knows nothing of the protocol.
pub trait Backend: std::marker::Send + 'static {
    /// Address of the interface.
    fn local(&self) -> MacAddr;
    /// Index of the interface, for claims; 0 if there is none.
    fn index(&self) -> u32;
    /// MTU of the interface.
    fn mtu(&self) -> u32 {
        u32::MAX
    }
    /// What keeps the interface from receiving now.
    ///
    /// # Errors
    /// It does not exist any more.
    fn obstacle(&self) -> io::Result<Option<Obstacle>> {
        Ok(None)
    }
    /// The interface has gone down since this was asked last, perhaps for a moment.
    fn went_down(&mut self) -> bool {
        false
    }
    /// True if what is sent may be answered.
    fn is_connected(&self) -> bool {
        true
    }
    /// Readable when frames wait.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Hands frames that wait to `handler`, at most a batch; tells how many. `handler` sends answers
    /// through its second parameter.
    ///
    /// # Errors
    /// The interface has failed, or does not exist any more; the message says how and what to do. One that is down is waited for.
    fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize>;
    /// Sends one frame.
    ///
    /// # Errors
    /// The frame could not be sent.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
    /// Frames lost since the last call: by the kernel before they came here, and on sending.
    fn losses(&mut self) -> Losses;
    /// This program has opened `feb`: its frames are wanted here.
    ///
    /// # Errors
    /// They come by a slower way, and why: the receiver goes on, and tells it.
    fn opened(&mut self, feb: MacAddr) -> io::Result<()> {
        let _ = feb;
        Ok(())
    }
    /// This program has closed `feb`.
    fn closed(&mut self, feb: MacAddr) {
        let _ = feb;
    }
    /// A socket for the frames of `feb` alone, which do not come here until [`Self::closed`]. `None`: this backend has none.
    ///
    /// # Errors
    /// The operating system's.
    fn split_off(&mut self, feb: MacAddr) -> io::Result<Option<Box<dyn Backend>>> {
        let _ = feb;
        Ok(None)
    }
}

/// Frames that a backend lost.
#[derive(Debug, Default, Clone, Copy)]
pub struct Losses {
    /// Dropped by the kernel, whose buffer was full.
    pub received: u64,
    /// Could not be sent.
    pub sent: u64,
}
