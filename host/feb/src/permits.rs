//! The permit to begin a transmission, which a board gives to who asks (rtl/fade/fade_permit.sv).

use fadelink_wire::Permit;

/// The permit of this moment.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    current: Permit,
}

impl Permits {
    /// The permit, if there is one.
    pub(crate) fn current(&self) -> Permit {
        self.current
    }

    /// True if a START that shows this is to be obeyed; `None`: it is to be obeyed without. Another one gets a permit.
    pub(crate) fn allow(&mut self, shown: Option<Permit>) -> bool {
        let Some(shown) = shown else { return true };
        if self.current.is_none() {
            self.current = Permit::new(fastrand::u32(1..1 << 30));
            return false;
        }
        shown == self.current
    }

    /// A transmission begins, or RESET was obeyed.
    pub(crate) fn use_up(&mut self) {
        self.current = Permit::NONE;
    }
}
