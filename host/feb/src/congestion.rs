//! The delay between data frames, by the share of retransmissions (rtl/common/congestion.sv).

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
/// What the paper's rule adds beside a quarter, so that it can leave zero.
const PAPER_STEP: u32 = 16;
/// The longest delay.
const CEILING: u32 = 1 << 20;

/// The rule, over one transmission.
#[derive(Debug, Default)]
pub struct Congestion {
    rule: Rule,
    frames: u32,
    retransmitted: u32,
    delay: u32,
}

impl Congestion {
    /// At the start of a transmission: no delay.
    pub fn new(rule: Rule) -> Congestion {
        Congestion { rule, ..Congestion::default() }
    }

    /// The delay now, in clock cycles of the transmit side.
    pub fn delay(&self) -> u32 {
        self.delay
    }

    /// A data frame was sent, `again` or for the first time.
    pub fn sent(&mut self, again: bool) {
        self.frames += 1;
        self.retransmitted += u32::from(again);
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(congestion: &mut Congestion, frames: u32, again: u32) -> u32 {
        (0..frames).for_each(|i| congestion.sent(i < again));
        congestion.delay()
    }

    #[test]
    fn the_papers_rule_grows_from_zero_and_returns_to_it() {
        let mut congestion = Congestion::new(Rule::Paper);
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
        let mut congestion = Congestion::new(Rule::Fair);
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
        let mut pair = [Congestion::new(Rule::Fair), Congestion::new(Rule::Fair)];
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
}
