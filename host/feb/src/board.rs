//! A board with FADE, of either protocol.

use std::time::Duration;

use fadelink_wire::{MacAddr, Protocol};

use crate::fade1::Fade1Board;
use crate::feb::{Fade10gBoard, User};
use crate::settings::BoardSettings;
use crate::status::Status;

/// See the module. What is behind its protocol is a [`User`].
pub enum Board<U> {
    /// With FADE-10G.
    Fade10g(Box<Fade10gBoard<U>>),
    /// With FADE v1.
    Fade1(Box<Fade1Board<U>>),
}

/// The same expression for the board of either protocol.
macro_rules! of {
    ($self:expr, $board:ident => $value:expr) => {
        match $self {
            Board::Fade10g($board) => $value,
            Board::Fade1($board) => $value,
        }
    };
}

impl<U: User> Board<U> {
    /// One that was switched on now.
    pub fn new(protocol: Protocol, mac: MacAddr, settings: BoardSettings, user: U) -> Board<U> {
        match protocol {
            Protocol::Fade10g => Board::Fade10g(Box::new(Fade10gBoard::new(mac, settings, user))),
            Protocol::Fade1 => Board::Fade1(Box::new(Fade1Board::new(mac, settings, user))),
        }
    }

    /// What it speaks.
    pub fn protocol(&self) -> Protocol {
        match self {
            Board::Fade10g(_) => Protocol::Fade10g,
            Board::Fade1(_) => Protocol::Fade1,
        }
    }

    /// Its address.
    pub fn mac(&self) -> MacAddr {
        of!(self, board => board.mac())
    }

    /// What is behind its protocol.
    pub fn user(&self) -> &U {
        of!(self, board => &board.user)
    }

    /// The same, to change it.
    pub fn user_mut(&mut self) -> &mut U {
        of!(self, board => &mut board.user)
    }

    /// Its state and counters.
    pub fn status(&self) -> Status {
        of!(self, board => board.status())
    }

    /// A frame has come.
    pub fn take(&mut self, frame: &[u8], now: Duration) {
        of!(self, board => board.take(frame, now));
    }

    /// The next frame to send, if it is time for one.
    pub fn give(&mut self, now: Duration) -> Option<&[u8]> {
        of!(self, board => board.give(now))
    }

    /// When that is, at the earliest.
    pub fn next_frame(&self) -> Duration {
        of!(self, board => board.next_frame())
    }
}
