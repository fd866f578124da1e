//! What subscribers have asked for. The library keeps each name of a subscription once, however many clients have it, in some 25 times its
//! size, until the last of them is gone.

use std::time::{Duration, Instant};

use zmq::{Result, Socket, DONTWAIT};

/// Bytes of different names that all subscribers may have together, and more for each name.
const BYTES: usize = 256 << 10;
const NAME: usize = 32;
/// The same at any time.
const AT_ONCE: usize = 4 * BYTES;
/// Messages that are taken at a time. More of them wait.
const MESSAGES: usize = 1024;
/// Time in which who says more than one may is turned away: then the others are not too many.
const LOUD: Duration = Duration::from_millis(500);

/// The names that a socket has.
#[derive(Debug, Default)]
pub struct Subscriptions {
    bytes: usize,
    /// Since when they are too many.
    since: Option<Instant>,
}

impl Subscriptions {
    /// Takes what the library tells: each name that is new, and each that nobody has any more (`ZMQ_XPUB` of zmq_socket(3)).
    ///
    /// # Errors
    /// The library's.
    pub fn hear(&mut self, socket: &Socket) -> Result<()> {
        for _ in 0..MESSAGES {
            if self.bytes > AT_ONCE {
                break;
            }
            match socket.recv_bytes(DONTWAIT) {
                Ok(message) => self.take(&message),
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => break,
                Err(error) => return Err(error),
            }
        }
        self.since = self.since.or_else(|| Some(Instant::now())).filter(|_| self.bytes > BYTES);
        Ok(())
    }

    fn take(&mut self, message: &[u8]) {
        match message {
            [1, name @ ..] => self.bytes += NAME + name.len(),
            [0, name @ ..] => self.bytes = self.bytes.saturating_sub(NAME + name.len()),
            // Words of a client to the program.
            _ => {}
        }
    }

    /// They take more memory than subscribers need, and have done so for a while.
    pub fn are_too_many(&self) -> bool {
        self.bytes > AT_ONCE || self.since.is_some_and(|since| since.elapsed() >= LOUD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_while_somebody_has_them() {
        let mut all = Subscriptions::default();
        let message = |first: u8, size: usize| [&[first][..], &vec![b'x'; size]].concat();
        for (said, expected) in [
            (message(1, 7), NAME + 7),
            (message(1, 0), 2 * NAME + 7),
            (b"2 is not one".to_vec(), 2 * NAME + 7),
            (vec![], 2 * NAME + 7),
            (message(0, 7), NAME),
            (message(0, 1), 0),
        ] {
            all.take(&said);
            assert_eq!(all.bytes, expected, "{said:?}");
        }
    }
}
