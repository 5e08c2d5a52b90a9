//! Sizes as operators write them: `64MiB`, `4KiB`, `100B`.

use std::fmt;

use serde::{Deserialize, Deserializer};

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl std::str::FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!("`{text}` is not a size: write a whole number and `B`, `KiB`, `MiB` or `GiB`")
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let known = UNITS.iter().find(|(name, _)| *name == unit.trim_start());
        let (_, factor) = known.ok_or_else(error)?;
        let number = number.parse::<u64>().map_err(|_| error())?;
        number.checked_mul(*factor).map(Self).ok_or_else(error)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for ByteSize {
    /// Formats the size in the largest unit that does not exceed it, with one decimal if necessary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor) =
            UNITS.into_iter().find(|(_, factor)| self.0 >= *factor).unwrap_or(("B", 1));
        if self.0.is_multiple_of(factor) {
            write!(f, "{}{name}", self.0 / factor)
        } else {
            write!(f, "{:.1}{name}", self.0 as f64 / factor as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_formatted() {
        for (text, bytes) in [("64MiB", 64 << 20), ("4KiB", 4096), ("0B", 0), ("1 GiB", 1 << 30)] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for odd in ["", "64", "64MB", "MiB", "-1B", "99999999999GiB"] {
            assert!(odd.parse::<ByteSize>().is_err(), "{odd}");
        }
        assert_eq!(ByteSize(1536).to_string(), "1.5KiB");
        assert_eq!(ByteSize(2 << 20).to_string(), "2MiB");
    }
}
