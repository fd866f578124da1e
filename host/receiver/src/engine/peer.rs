//! What is known of a FEB: what it speaks, whose core it runs, and what it reports about itself.

use std::sync::Arc;

use fadelink_wire::fade10g::{self, Identity};
use fadelink_wire::{fade1, Firmware, Permit, Protocol};

use super::command::{FebConfig, Resumed};
use super::current::Current;
use super::fade10g_transmission::Fade10g;
use super::fade1_transmission::Fade1;
use super::start::Which;
use crate::kind::{Kind, Swap};
use crate::shared::Shared;
use crate::told::Expected;
use crate::window::{Verdict, Window};

/// A FEB.
pub(super) struct Peer {
    pub(super) config: FebConfig,
    pub(super) shared: Arc<Shared>,
    /// What it was found to speak.
    pub(super) protocol: Option<Protocol>,
    /// Whose core it was found to run.
    pub(super) firmware: Option<Firmware>,
    /// What it reported about itself.
    pub(super) identity: Option<Identity>,
    /// The last START has asked for the CRC of the words.
    pub(super) has_asked_checksum: bool,
    /// What makes its words native.
    pub(super) swap: Swap,
}

impl Peer {
    pub(super) fn new(config: FebConfig, shared: Arc<Shared>) -> Peer {
        let (protocol, firmware) = (config.protocol(), config.firmware);
        Peer { config, shared, protocol, firmware, identity: None, has_asked_checksum: false, swap: Swap::None }
    }

    /// It has answered IDENTIFY by a response, so it speaks FADE-10G.
    pub(super) fn identified(&mut self, value: u64) {
        self.protocol = Some(Protocol::Fade10g);
        self.identity = Identity::from_value(value);
        let published = if self.identity.is_some() { Firmware::Fadelink } else { Firmware::Published10g };
        self.firmware = self.config.firmware.or(Some(published));
    }

    /// It has answered by the state of a transmission, so it speaks FADE v1 and runs Fadelink's core. A transmission that was to go
    /// on may be at its end.
    pub(super) fn told_state(&mut self, state: &fade1::State) {
        self.protocol = Some(Protocol::Fade1);
        self.firmware = self.config.firmware.or(Some(Firmware::Fadelink));
        if let Some(checksum) = state.checksum.filter(|_| self.config.checksum && self.keeps_words()) {
            self.shared.told.begin(Some(state.transmission), Expected::Maybe);
            self.shared.told.set_crc(checksum.into());
        }
    }

    /// It has answered START of FADE v1.
    pub(super) fn answers_fade1(&mut self) {
        self.firmware = self.config.firmware.or(Some(Firmware::Fadelink));
        self.speaks(Protocol::Fade1);
    }

    /// It has sent data of FADE v1.
    pub(super) fn sent_fade1(&mut self, data: &fade1::Data<'_>) {
        let published = if data.retry == fade1::RETRY_FADELINK { Firmware::Fadelink } else { Firmware::PublishedV1 };
        self.firmware = self.config.firmware.or(Some(published));
    }

    /// Tells the reader what it is, and decides what makes its words native.
    pub(super) fn speaks(&mut self, protocol: Protocol) {
        self.protocol = Some(protocol);
        let firmware = self.firmware;
        let word_order = self.config.word_order.or(firmware.map(Firmware::word_order));
        self.shared.set_kind(Kind { protocol, firmware, word_order });
        self.swap = word_order.map_or(Swap::None, |order| Swap::of(order, firmware));
    }

    /// The argument of START, which is sent now. The published core has a meaning for none.
    pub(super) fn start_argument(&mut self, permit: Permit) -> u32 {
        self.has_asked_checksum = self.asks_checksum();
        let checksum = if self.has_asked_checksum { fade10g::START_CHECKSUM } else { 0 };
        match self.firmware {
            Some(Firmware::Published10g) => 0,
            _ => permit.to_argument() | checksum,
        }
    }

    /// START asks for the CRC of the words: the FEB has it, somebody wants it, and the words are here as they are on the wire.
    fn asks_checksum(&self) -> bool {
        let has_it = self.identity.is_some_and(|identity| identity.checksum);
        self.config.checksum && has_it && self.keeps_words() && self.firmware == Some(Firmware::Fadelink)
    }

    /// The words are here as they are on the wire.
    fn keeps_words(&self) -> bool {
        let order = self.config.word_order.or(self.firmware.map(Firmware::word_order));
        order.is_none_or(|order| Swap::of(order, self.firmware) == Swap::None)
    }

    /// Whether the FEB will tell that CRC.
    fn expected_crc(&self, protocol: Protocol, which: Which) -> Expected {
        match (protocol, which) {
            (Protocol::Fade10g, Which::New { .. }) if self.has_asked_checksum => Expected::Yes,
            (Protocol::Fade10g, Which::New { .. }) => Expected::No,
            // The program that began it may have asked; FADE v1 tells it at the end alone.
            _ if self.config.checksum => Expected::Maybe,
            _ => Expected::No,
        }
    }

    /// A transmission begins.
    pub(super) fn begin(&mut self, protocol: Protocol, which: Which) -> Current {
        self.speaks(protocol);
        let ours = self.firmware == Some(Firmware::Fadelink);
        let identity = self.identity.filter(|_| ours);
        let FebConfig { first_packet, window, ring_packets, confirm, .. } = self.config;
        let crc = self.expected_crc(protocol, which);
        match which {
            Which::New { number, .. } => self.shared.begin(0, Some(number), crc),
            Which::Resumed(resumed) => self.shared.begin(resumed.bytes, resumed.number, crc),
        }
        match (protocol, which) {
            (Protocol::Fade10g, Which::New { .. }) => {
                let window = Window::new(first_packet, window, ring_packets);
                Current::Fade10g(Fade10g::new(window, ours, identity, confirm))
            }
            (Protocol::Fade10g, Which::Resumed(resumed)) => {
                Current::Fade10g(Fade10g::new(self.resumed_window(resumed), true, identity, confirm))
            }
            (Protocol::Fade1, Which::New { number, next_start }) => {
                Current::Fade1(Fade1::new(ring_packets, number, next_start, confirm))
            }
            (Protocol::Fade1, Which::Resumed(resumed)) => {
                Current::Fade1(Fade1::resumed(ring_packets, resumed, confirm))
            }
        }
    }

    /// The window of a transmission of FADE-10G that goes on.
    fn resumed_window(&self, resumed: Resumed) -> Window {
        let FebConfig { first_packet, window, ring_packets, .. } = self.config;
        Window::resumed(first_packet, window, ring_packets, resumed.bytes / fade10g::PACKET_BYTES as u64)
    }

    /// A packet of FADE-10G may be of a transmission that is to go on.
    pub(super) fn may_be_of(&self, resumed: Resumed, data: &fade10g::Data<'_>) -> bool {
        self.resumed_window(resumed).judge(data.packet, None, 0) != Verdict::ProtocolError
    }

    /// The same of FADE v1.
    pub(super) fn may_be_of_fade1(&self, resumed: Resumed, data: &fade1::Data<'_>) -> bool {
        Fade1::resumed(self.config.ring_packets, resumed, self.config.confirm).knows(data)
    }
}
