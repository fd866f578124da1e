//! Whether the interface can receive. One that is down, or has become a port of a bridge, gives no error: no frame comes.

use std::io;
use std::time::Duration;

use super::requests::LOSSES_INTERVAL;
use crate::backend::Backend;
use crate::counters::{count, LinkCounters};
use crate::interface::{name_of, Obstacle};

/// What was seen last.
#[derive(Default)]
pub(super) struct Watch {
    next: Duration,
    /// What keeps it from receiving, and since when.
    obstacle: Option<(Obstacle, Duration)>,
}

impl Watch {
    /// Looks, if it is time to, and tells what has changed.
    ///
    /// # Errors
    /// The interface does not exist any more.
    pub(super) fn look(&mut self, backend: &mut dyn Backend, link: &LinkCounters, now: Duration) -> io::Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + LOSSES_INTERVAL;
        // It may be up again by now.
        let was_down = backend.went_down().then_some(Obstacle::Down);
        let found = backend.obstacle()?.or(was_down);
        if found.as_ref() == self.obstacle.as_ref().map(|(obstacle, _)| obstacle) {
            return Ok(());
        }
        let name = name_of(backend.index()).unwrap_or_default();
        match found {
            Some(obstacle) => {
                tracing::warn!(
                    "interface {name} {obstacle}; nothing may come until that is undone, and the boards wait"
                );
                count(&link.interruptions);
                let since = self.obstacle.take().map_or(now, |(_, since)| since);
                self.obstacle = Some((obstacle, since));
            }
            None => {
                let since = self.obstacle.take().map_or(now, |(_, since)| since);
                tracing::warn!("interface {name} receives again, after {:.1} s", (now - since).as_secs_f64());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use fadelink_wire::MacAddr;

    use super::*;
    use crate::backend::in_process::InProcess;
    use crate::backend::{Losses, Send};

    /// An interface of which this is said next.
    struct Told(InProcess, Option<Option<Obstacle>>, bool);

    impl Backend for Told {
        fn local(&self) -> MacAddr {
            self.0.local()
        }

        fn index(&self) -> u32 {
            0
        }

        fn fd(&self) -> BorrowedFd<'_> {
            self.0.fd()
        }

        fn obstacle(&self) -> io::Result<Option<Obstacle>> {
            self.1.clone().ok_or(io::ErrorKind::NotFound.into())
        }

        fn went_down(&mut self) -> bool {
            std::mem::take(&mut self.2)
        }

        fn receive(&mut self, handler: &mut dyn FnMut(&[u8], &mut Send<'_>)) -> io::Result<usize> {
            self.0.receive(handler)
        }

        fn send(&mut self, frame: &[u8]) -> io::Result<()> {
            self.0.send(frame)
        }

        fn losses(&mut self) -> Losses {
            Losses::default()
        }
    }

    #[test]
    fn each_interruption_is_counted_once_and_the_end_of_the_interface_is_an_error() {
        let (cable, _there) = InProcess::pair(MacAddr([2; 6]), MacAddr([4; 6])).unwrap();
        let (mut backend, link, mut watch) =
            (Told(cable, Some(None), false), LinkCounters::default(), Watch::default());
        let port = || Obstacle::Port("br0".into());
        let mut now = Duration::ZERO;
        for (found, went_down, interruptions) in [
            (None, false, 0),
            (Some(Obstacle::Down), true, 1),
            (Some(Obstacle::Down), false, 1),
            (Some(port()), false, 2),
            (None, false, 2),
            (None, false, 2),
            (Some(Obstacle::Down), true, 3),
            (None, false, 3),
            (None, true, 4),
            (None, false, 4),
        ] {
            (backend.1, backend.2) = (Some(found.clone()), went_down);
            watch.look(&mut backend, &link, now).unwrap();
            assert_eq!(link.read().interruptions, interruptions, "{found:?}");
            // Not before it is time.
            backend.1 = None;
            watch.look(&mut backend, &link, now).unwrap();
            now += LOSSES_INTERVAL;
        }
        assert!(watch.look(&mut backend, &link, now).is_err());
    }
}
