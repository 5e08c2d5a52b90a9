//! Durations as authors write them: `500ms`, `30s`, `30m`, `2h`, `7d`.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Units from the largest to the smallest, with their milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A duration in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration {
    ms: u64,
}

/// The error of parsing a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a duration: write a whole number and `ms`, `s`, `m`, `h` or `d`, \
         such as `500ms` or `30m`"
)]
pub struct ParseDurationError {
    /// The invalid text, cut to 64 characters.
    pub text: String,
}

impl HumanDuration {
    /// Creates a duration from milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self { ms }
    }

    /// Returns the duration in milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.ms
    }
}

impl std::str::FromStr for HumanDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        let error = || ParseDurationError { text: text.chars().take(64).collect() };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*unit_ms));
        ms.map(Self::from_ms).ok_or_else(error)
    }
}

impl fmt::Display for HumanDuration {
    /// Writes the duration in the largest unit in which it is a whole number, so that equal
    /// durations have the same text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |unit_ms: u64| self.ms != 0 && self.ms.is_multiple_of(unit_ms);
        let (name, unit_ms) =
            UNITS.into_iter().find(|(_, unit_ms)| whole(*unit_ms)).unwrap_or(("ms", 1));
        write!(f, "{}{name}", self.ms / unit_ms)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DurationVisitor)
    }
}

/// Deserializes a duration. The error for a bare number says what to write instead.
struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = HumanDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration with its unit, such as \"500ms\" or \"30m\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HumanDuration, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::HumanDuration;

    #[test]
    fn durations_are_displayed_in_the_largest_unit() {
        for (text, ms, canonical) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("120s", 120_000, "2m"),
            ("2h", 7_200_000, "2h"),
            ("0s", 0, "0ms"),
        ] {
            let span: HumanDuration = text.parse().unwrap();
            assert_eq!((span.as_ms(), span.to_string().as_str()), (ms, canonical), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in ["", "5", "s", "-1s", "1.5s", "1 s", "99999999999999999999d", "5S"] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
    }
}
