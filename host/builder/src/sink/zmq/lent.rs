//! Messages whose memory is counted until ZeroMQ has given it back. The library bounds what waits for a client by the number
//! of messages alone, and tells nobody how much waits.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zmq::Socket;

/// What the library and this file need for a message beside its bytes, at most.
const OVERHEAD: u64 = 512;

#[derive(Debug, Default, Clone, Copy)]
struct Amount {
    messages: u64,
    bytes: u64,
}

/// What ZeroMQ has of this program's memory. A message that waits for several clients is there once.
#[derive(Debug, Default)]
pub struct Lent {
    amount: Mutex<Amount>,
    less: Condvar,
}

/// The memory of a message.
struct Loan {
    data: Vec<u8>,
    to: Arc<Lent>,
}

impl Lent {
    fn lock(&self) -> MutexGuard<'_, Amount> {
        self.amount.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, longest: Duration, is_enough: impl Fn(&Amount) -> bool) -> Amount {
        let deadline = Instant::now() + longest;
        let mut amount = self.lock();
        while !is_enough(&amount) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            amount = self.less.wait_timeout(amount, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *amount
    }

    /// Waits until there is room for `more` bytes below `bound`; true: there is. One message has room always.
    pub fn wait_for_room(&self, more: u64, bound: u64, longest: Duration) -> bool {
        let has_room = |amount: &Amount| amount.messages == 0 || amount.bytes + more <= bound;
        has_room(&self.wait(longest, has_room))
    }

    /// Waits until all has been given back: how many messages have not.
    pub fn wait_for_all(&self, longest: Duration) -> u64 {
        self.wait(longest, |amount| amount.messages == 0).messages
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut amount = self.to.lock();
        amount.messages -= 1;
        amount.bytes -= memory(&self.data);
        drop(amount);
        self.to.less.notify_all();
    }
}

/// What a message takes.
pub fn memory(data: &[u8]) -> u64 {
    data.len() as u64 + OVERHEAD
}

/// Called by ZeroMQ, from its own thread too, when it needs the memory no longer.
unsafe extern "C" fn give_back(_data: *mut c_void, loan: *mut c_void) {
    // SAFETY: it is the box of `Message::lend`, and ZeroMQ gives each back once.
    drop(unsafe { Box::from_raw(loan.cast::<Loan>()) });
}

/// A message that is to be sent.
pub struct Message(zmq_sys::zmq_msg_t);

impl Message {
    /// Of this data.
    ///
    /// # Errors
    /// There is no memory.
    pub fn lend(data: Vec<u8>, to: &Arc<Lent>) -> zmq::Result<Message> {
        let mut amount = to.lock();
        amount.messages += 1;
        amount.bytes += memory(&data);
        drop(amount);
        let mut loan = Box::new(Loan { data, to: to.clone() });
        let (bytes, length) = (loan.data.as_mut_ptr(), loan.data.len());
        let loan = Box::into_raw(loan).cast();
        let mut message = zmq_sys::zmq_msg_t::default();
        // SAFETY: the bytes stay where they are, and nobody else uses them, until `give_back`.
        let done = unsafe { zmq_sys::zmq_msg_init_data(&mut message, bytes.cast(), length, Some(give_back), loan) };
        if done != 0 {
            let error = last_error();
            // SAFETY: ZeroMQ has not taken it.
            drop(unsafe { Box::from_raw(loan.cast::<Loan>()) });
            return Err(error);
        }
        Ok(Message(message))
    }

    /// Gives it to ZeroMQ.
    ///
    /// # Errors
    /// It has not taken it; it may be sent again.
    pub fn send(&mut self, socket: &mut Socket) -> zmq::Result<()> {
        // SAFETY: both are valid. A message that was taken is an empty one from then on.
        match unsafe { zmq_sys::zmq_msg_send(&mut self.0, socket.as_mut_ptr(), 0) } {
            -1 => Err(last_error()),
            _ => Ok(()),
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        // SAFETY: it was made by `zmq_msg_init_data`.
        unsafe { zmq_sys::zmq_msg_close(&mut self.0) };
    }
}

fn last_error() -> zmq::Error {
    // SAFETY: it has no conditions.
    zmq::Error::from_raw(unsafe { zmq_sys::zmq_errno() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_counted() {
        let lent = Arc::default();
        let one = Message::lend(vec![7; 1000], &lent).unwrap();
        assert_eq!(lent.wait_for_all(Duration::ZERO), 1);
        assert!(!lent.wait_for_room(1000, 2000, Duration::ZERO));
        assert!(lent.wait_for_room(1000, 3000, Duration::ZERO));
        drop(one);
        assert_eq!(lent.wait_for_all(Duration::ZERO), 0);
        assert!(lent.wait_for_room(1000, 1, Duration::ZERO), "one has room always");
    }

    #[test]
    fn a_message_arrives_and_is_given_back() {
        let context = zmq::Context::new();
        let (mut push, pull) = (context.socket(zmq::PUSH).unwrap(), context.socket(zmq::PULL).unwrap());
        push.set_sndtimeo(0).unwrap();
        let lent = Arc::default();
        let mut message = Message::lend(vec![7; 1000], &lent).unwrap();
        assert_eq!(message.send(&mut push), Err(zmq::Error::EAGAIN), "nobody is there");
        push.set_sndtimeo(10_000).unwrap();
        push.bind("inproc://here").unwrap();
        pull.connect("inproc://here").unwrap();
        message.send(&mut push).unwrap();
        drop(message);
        assert_eq!(lent.wait_for_all(Duration::ZERO), 1);
        assert_eq!(pull.recv_bytes(0).unwrap(), [7; 1000]);
        assert_eq!(lent.wait_for_all(Duration::from_secs(10)), 0);
    }
}
