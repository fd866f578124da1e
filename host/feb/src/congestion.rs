//! The delay between data frames, by the share of retransmissions (rtl/fade10g/fade10g_congestion.sv).

/// Data frames of a period.
const PERIOD: u32 = 1024;
/// More retransmissions than this in a period: the delay grows.
const HIGH: u32 = PERIOD / 8;
/// Fewer: it shrinks.
const LOW: u32 = PERIOD / 32;
/// What it grows by beside a quarter, so that it can leave zero.
const STEP: u32 = 16;
/// The longest delay.
const CEILING: u32 = 1 << 20;

/// The rule, over one transmission.
#[derive(Debug, Default)]
pub struct Congestion {
    frames: u32,
    retransmitted: u32,
    delay: u32,
}

impl Congestion {
    /// The delay now, in clock cycles of the transmit side.
    pub fn delay(&self) -> u32 {
        self.delay
    }

    /// A data frame was sent, `again` or for the first time.
    pub fn sent(&mut self, again: bool) {
        self.frames += 1;
        self.retransmitted += u32::from(again);
        if self.frames == PERIOD {
            let quarter = self.delay / 4;
            if self.retransmitted > HIGH {
                self.delay = (self.delay + quarter + STEP).min(CEILING);
            } else if self.retransmitted < LOW {
                self.delay -= quarter.max(u32::from(self.delay > 0));
            }
            (self.frames, self.retransmitted) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_from_zero_and_returns_to_it() {
        let mut congestion = Congestion::default();
        let mut period = |again: u32| {
            (0..PERIOD).for_each(|i| congestion.sent(i < again));
            congestion.delay()
        };
        assert_eq!((period(HIGH), period(HIGH + 1), period(HIGH + 1)), (0, 16, 36));
        assert_eq!((period(LOW), period(LOW - 1)), (36, 27));
        for _ in 0..20 {
            period(0);
        }
        assert_eq!(period(0), 0);
        for _ in 0..100 {
            period(PERIOD);
        }
        assert_eq!(period(PERIOD), CEILING);
    }
}
