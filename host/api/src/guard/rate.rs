//! Rate limits: `10/s`, `600/m`, `5000/h`.

use std::fmt;
use std::num::NonZeroU32;

use governor::Quota;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of requests per period, which is also the burst size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    requests: NonZeroU32,
    period: Period,
}

/// The period of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Second,
    Minute,
    Hour,
}

/// Suffix of each period of a rate limit, such as `m` in `10/m`, with the period and its length in
/// seconds.
const UNITS: [(&str, Period, u64); 3] =
    [("s", Period::Second, 1), ("m", Period::Minute, 60), ("h", Period::Hour, 3_600)];

/// The error for a string that is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a rate: write a whole number above 0 and `/s`, `/m` or `/h`, such as `10/s`"
)]
pub struct RateError {
    /// The invalid string, cut to 32 characters.
    pub text: String,
}

impl Rate {
    /// Returns the rate as a quota of `governor`.
    pub(crate) fn quota(self) -> Quota {
        match self.period {
            Period::Second => Quota::per_second(self.requests),
            Period::Minute => Quota::per_minute(self.requests),
            Period::Hour => Quota::per_hour(self.requests),
        }
    }

    /// Returns the rate, lowered to the sustained rate and burst size of `cap` if it exceeds them.
    #[must_use]
    pub fn capped_by(self, cap: Self) -> Self {
        if self.per_hour() > cap.per_hour() {
            return cap;
        }
        if self.requests <= cap.requests {
            return self;
        }
        // The shorter period of `cap` has the same sustained rate with a smaller burst.
        let requests = u32::try_from(self.per_hour() / (3_600 / cap.unit().1));
        match requests.ok().and_then(NonZeroU32::new) {
            Some(requests) => Self { requests, period: cap.period },
            None => Self { requests: cap.requests, period: self.period },
        }
    }

    fn unit(self) -> (&'static str, u64) {
        let row = UNITS.iter().find(|(_, period, _)| *period == self.period);
        row.map_or(("s", 1), |(letter, _, seconds)| (letter, *seconds))
    }

    fn per_hour(self) -> u64 {
        u64::from(self.requests.get()) * (3_600 / self.unit().1)
    }
}

impl std::str::FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let parse = || {
            let (number, unit) = text.split_once('/')?;
            let (_, period, _) = UNITS.iter().find(|(letter, ..)| *letter == unit)?;
            // `parse` also accepts a sign.
            let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
            let requests = is_number.then(|| number.parse().ok()).flatten()?;
            Some(Self { requests, period: *period })
        };
        parse().ok_or_else(|| RateError { text: text.chars().take(32).collect() })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.requests, self.unit().0)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limits_round_trip_as_text_and_invalid_rate_limits_are_rejected() {
        for text in ["10/s", "1/m", "5000/h"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for invalid in ["", "10", "0/s", "/s", "-1/s", "+1/s", "10/d", "1.5/s", "99999999999/s"] {
            assert!(invalid.parse::<Rate>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn capped_rate_is_not_above_cap() {
        let rate = |text: &str| text.parse::<Rate>().unwrap();
        for (own, cap, capped) in [
            ("1/s", "61/m", "1/s"),
            ("1/s", "59/m", "59/m"),
            ("7/m", "10/s", "7/m"),
            // Lower sustained rate, larger burst.
            ("30000/h", "10/s", "8/s"),
            ("36000/h", "10/s", "10/s"),
            ("20/h", "10/m", "10/h"),
        ] {
            assert_eq!(rate(own).capped_by(rate(cap)), rate(capped), "{own} {cap}");
        }
    }
}
