//! The delay between data frames, controlled by the share of retransmissions (rtl/common/congestion.sv).

use std::time::Duration;

use fadelink_wire::MacAddr;

use crate::random::{first_random, next_random};

/// Which rule adapts the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rule {
    /// Boards that share a link come to equal delays.
    #[default]
    Fair,
    /// The paper's: the ratio of two delays stays nearly what it is.
    Paper,
}

/// What the fair rule adds for each retransmission above the eighth, in clock cycles: with those of a whole
/// period, the time of a data frame.
const GROWTH: u32 = 4;
/// A delay that chance losses alone do not make, in clock cycles: 1/16 of the time of a data frame.
const CONGESTED: u32 = 64;
/// What the paper's rule adds beside a quarter, so that it can leave zero.
const PAPER_STEP: u32 = 16;
/// The longest delay.
const CEILING: u32 = 1 << 20;

/// The estimate of a round trip after `sample`: follows at once upwards, slowly downwards.
pub(crate) fn follow(estimate: Duration, sample: Duration) -> Duration {
    if sample > estimate {
        sample
    } else {
        (estimate * 3 + sample) / 4
    }
}

/// The rule, over one transmission.
#[derive(Debug)]
pub struct Congestion {
    rule: Rule,
    frames: u32,
    retransmitted: u32,
    delay: u32,
    periods: u32,
    /// The next pause is a quarter of a frame longer.
    probing: bool,
    least_round_trip: Duration,
    /// The last round trip took a quarter longer than the best: frames wait somewhere on their way.
    queued: bool,
    random: u64,
}

impl Congestion {
    /// At the start of a transmission of the board with address `mac`: no delay.
    pub fn new(rule: Rule, mac: MacAddr) -> Congestion {
        let m = mac.0;
        Congestion {
            rule,
            frames: 0,
            retransmitted: 0,
            delay: 0,
            periods: 0,
            probing: false,
            least_round_trip: Duration::MAX,
            queued: false,
            random: first_random(u64::from_be_bytes([0, 0, m[0], m[1], m[2], m[3], m[4], m[5]])),
        }
    }

    /// For the next transmission.
    pub fn restart(&mut self) {
        let random = self.random;
        *self = Congestion { random, ..Congestion::new(self.rule, MacAddr::BROADCAST) };
    }

    /// The delay now, in clock cycles of the transmit side.
    pub fn delay(&self) -> u32 {
        self.delay
    }

    /// A packet was confirmed after `round_trip`.
    pub fn measured(&mut self, round_trip: Duration) {
        self.least_round_trip = self.least_round_trip.min(round_trip);
        self.queued = round_trip > self.least_round_trip * 5 / 4;
    }

    /// What is added to the delay after the frame that was sent last, of boards that need `pace` for a frame.
    pub fn extra(&mut self, pace: Duration) -> Duration {
        match self.rule {
            Rule::Paper => Duration::ZERO,
            Rule::Fair if self.queued || self.delay >= CONGESTED => {
                self.random = next_random(self.random);
                let most = if self.delay >= CONGESTED { pace * 3 / 4 } else { pace / 32 };
                most * (self.random >> 56) as u32 / 256
            }
            Rule::Fair if self.probing => pace / 4,
            Rule::Fair => Duration::ZERO,
        }
    }

    /// A data frame was sent, `again` or for the first time.
    pub fn sent(&mut self, again: bool) {
        self.frames += 1;
        self.retransmitted += u32::from(again);
        self.probing = false;
        let delay = self.delay;
        let (period, low, growth, part) = match self.rule {
            Rule::Fair => (256, 33, self.retransmitted.saturating_sub(32) * GROWTH, delay / 32),
            Rule::Paper => (1024, 32, delay / 4 + PAPER_STEP, delay / 4),
        };
        if self.frames < period {
            return;
        }
        if self.retransmitted > period / 8 {
            self.delay = (delay + growth).min(CEILING);
        } else if self.retransmitted < low {
            self.delay = delay - part.max(u32::from(delay > 0));
        }
        (self.frames, self.retransmitted) = (0, 0);
        self.periods += 1;
        self.probing = self.periods.is_multiple_of(64) || self.periods < 64 && self.periods.is_power_of_two();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0xfa, 0xde, 0, 0, 1]);

    fn period(congestion: &mut Congestion, frames: u32, again: u32) -> u32 {
        (0..frames).for_each(|i| congestion.sent(i < again));
        congestion.delay()
    }

    #[test]
    fn the_papers_rule_grows_from_zero_and_returns_to_it() {
        let mut congestion = Congestion::new(Rule::Paper, MAC);
        let mut period = |again| period(&mut congestion, 1024, again);
        assert_eq!((period(128), period(129), period(129)), (0, 16, 36));
        assert_eq!((period(32), period(31)), (36, 27));
        for _ in 0..20 {
            period(0);
        }
        assert_eq!(period(0), 0);
        for _ in 0..100 {
            period(1024);
        }
        assert_eq!(period(1024), CEILING);
    }

    #[test]
    fn the_fair_rule_grows_by_the_excess_and_shrinks_by_a_part() {
        let mut congestion = Congestion::new(Rule::Fair, MAC);
        let mut period = |again| period(&mut congestion, 256, again);
        assert_eq!((period(32), period(33), period(256)), (0, 4, 4 + 224 * 4));
        assert_eq!((period(32), period(0)), (900 - 28, 872 - 27));
        for _ in 0..200 {
            period(0);
        }
        assert_eq!(period(0), 0);
    }

    #[test]
    fn the_fair_rule_makes_two_delays_equal() {
        let mut pair = [Congestion::new(Rule::Fair, MAC), Congestion::new(Rule::Fair, MAC)];
        for _ in 0..4 {
            period(&mut pair[0], 256, 256);
        }
        for i in 0..600 {
            // The same share of losses for both.
            pair.iter_mut().for_each(|c| _ = period(c, 256, if i % 2 == 0 { 64 } else { 0 }));
        }
        let [a, b] = pair.map(|c| f64::from(c.delay()));
        assert!(b > 1000.0 && (a - b).abs() < 0.02 * b, "{a} and {b}");
    }

    #[test]
    fn the_fair_rule_probes_after_periods_1_2_4_to_64_and_each_64th() {
        let mut congestion = Congestion::new(Rule::Fair, MAC);
        let frame = Duration::from_micros(64);
        congestion.measured(frame);
        let mut probes = Vec::new();
        for period in 1..=192 {
            for _ in 0..256 {
                assert!(congestion.extra(frame).is_zero() || congestion.frames == 0);
                congestion.sent(false);
            }
            if congestion.extra(frame) == frame / 4 {
                probes.push(period);
            }
        }
        assert_eq!(probes, [1, 2, 4, 8, 16, 32, 64, 128, 192]);
        congestion.measured(frame * 2);
        assert!((0..100).all(|_| congestion.extra(frame) < frame / 32) && !congestion.extra(frame).is_zero());
    }
}
