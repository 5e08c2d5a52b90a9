//! Measured durations.

use std::time::Duration;

/// Durations in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Returns the percentile in milliseconds, or zero without durations.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort();
        Self(times)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Times;

    #[test]
    fn percentiles_are_measured_values() {
        let times: Times = (1..=200).rev().map(Duration::from_millis).collect();
        let told = |times: &Times| {
            [50, 95, 99, 100].map(|percent| times.percentile_ms(percent).to_string())
        };
        assert_eq!(told(&times), ["100", "190", "198", "200"]);
        let one: Times = [Duration::from_millis(7)].into_iter().collect();
        assert_eq!(told(&one), ["7"; 4]);
        assert_eq!(told(&Times::default()), ["0"; 4]);
    }
}
