//! Time and random numbers. The calls are journaled, so that a re-executed node receives the same
//! values.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wattle_graph::failure::{Failure, code};

/// Largest millisecond of a civil time.
const MAX_MILLISECOND: u16 = 999;

/// Nanoseconds of a millisecond.
const NANOS_PER_MILLI: i32 = 1_000_000;

/// Function that returns the current time.
pub const NOW: &str = "clock.now";

/// Function that returns a monotonic time.
pub const MONOTONIC: &str = "clock.monotonic";

/// Function that returns the operator's time zone.
pub const TIME_ZONE: &str = "clock.time-zone";

/// Function that converts an instant to civil time.
pub const TO_ZONE: &str = "clock.to-zone";

/// Function that converts a civil time to an instant.
pub const FROM_ZONE: &str = "clock.from-zone";

/// Function that returns random bytes.
pub const RANDOM: &str = "random.bytes";

/// All functions of this module. None of them has an effect outside of the guest.
pub const FUNCTIONS: [&str; 6] = [NOW, MONOTONIC, TIME_ZONE, TO_ZONE, FROM_ZONE, RANDOM];

/// Random bytes. In JSON they are base64, since each number of a list takes 72 bytes of memory. The
/// lists of bytes that older journals have are read as well.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RandomBytes(pub(crate) Vec<u8>);

impl Serialize for RandomBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for RandomBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RandomBytesVisitor)
    }
}

struct RandomBytesVisitor;

impl<'de> Visitor<'de> for RandomBytesVisitor {
    type Value = RandomBytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64, or a list of bytes")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RandomBytes, E> {
        STANDARD.decode(text).map(RandomBytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RandomBytes, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = list.next_element()? {
            bytes.push(byte);
        }
        Ok(RandomBytes(bytes))
    }
}

/// A civil date and time, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Civil {
    /// Year.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999.
    pub millisecond: u16,
}

/// A civil time in a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zoned {
    /// The civil time.
    pub civil: Civil,
    /// Seconds east of UTC.
    pub offset_seconds: i32,
    /// 1 for Monday to 7 for Sunday.
    pub weekday: u8,
    /// IANA name.
    pub zone: String,
}

fn time_zone(name: &str) -> Result<TimeZone, Failure> {
    TimeZone::get(name).map_err(|_| {
        Failure::new(
            code::INVALID,
            format!("there is no time zone `{name}`; use an IANA name such as `Asia/Shanghai`"),
        )
    })
}

/// Converts an instant, in milliseconds since the Unix epoch, to civil time in a zone.
///
/// # Errors
///
/// `invalid` for an unknown zone or an instant outside the years -9999 to 9999.
pub fn to_zone(unix_ms: i64, zone: &str) -> Result<Zoned, Failure> {
    let instant = Timestamp::from_millisecond(unix_ms)
        .map_err(|error| Failure::new(code::INVALID, format!("no such instant: {error}")))?;
    let zoned = instant.to_zoned(time_zone(zone)?);
    Ok(Zoned {
        civil: Civil {
            year: i32::from(zoned.year()),
            month: zoned.month().unsigned_abs(),
            day: zoned.day().unsigned_abs(),
            hour: zoned.hour().unsigned_abs(),
            minute: zoned.minute().unsigned_abs(),
            second: zoned.second().unsigned_abs(),
            millisecond: zoned.millisecond().unsigned_abs(),
        },
        offset_seconds: zoned.offset().seconds(),
        weekday: zoned.weekday().to_monday_one_offset().unsigned_abs(),
        zone: zone.to_owned(),
    })
}

/// Converts a civil time in a zone to an instant, in milliseconds since the Unix epoch. A time in a
/// gap resolves to the later instant, a time in a fold to the earlier one (RFC 5545).
///
/// # Errors
///
/// `invalid` for an unknown zone or a date that does not exist.
pub fn from_zone(civil: Civil, zone: &str) -> Result<i64, Failure> {
    let invalid = |what: &str| {
        Failure::new(
            code::INVALID,
            format!("there is no such date or time: {what} is out of range"),
        )
    };
    let small = |value: u8, what: &str| i8::try_from(value).map_err(|_| invalid(what));
    // A larger number of nanoseconds could overflow.
    if civil.millisecond > MAX_MILLISECOND {
        return Err(invalid("millisecond"));
    }
    let date_time = DateTime::new(
        i16::try_from(civil.year).map_err(|_| invalid("year"))?,
        small(civil.month, "month")?,
        small(civil.day, "day")?,
        small(civil.hour, "hour")?,
        small(civil.minute, "minute")?,
        small(civil.second, "second")?,
        i32::from(civil.millisecond) * NANOS_PER_MILLI,
    )
    .map_err(|error| Failure::new(code::INVALID, format!("there is no such date: {error}")))?;
    let zoned = date_time
        .to_zoned(time_zone(zone)?)
        .map_err(|error| Failure::new(code::INVALID, format!("no such time: {error}")))?;
    Ok(zoned.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::weight::weight;

    use super::*;

    #[test]
    fn random_bytes_are_base64_and_are_read_from_lists_of_older_journals() {
        let bytes = || RandomBytes(vec![0, 1, 127, 255]);
        let (text, older) = (json!("AAF//w=="), json!([0, 1, 127, 255]));
        assert_eq!(json!(bytes()), text);
        for recorded in [text, older] {
            assert_eq!(RandomBytes::deserialize(&recorded).unwrap(), bytes(), "{recorded}");
            assert_eq!(serde_json::from_value::<RandomBytes>(recorded).unwrap(), bytes());
        }
        for other in [json!([256]), json!("?"), json!(7), json!(null)] {
            assert!(serde_json::from_value::<RandomBytes>(other.clone()).is_err(), "{other}");
        }
    }

    #[test]
    fn recorded_random_bytes_take_little_more_memory_than_the_bytes() {
        let recorded = weight(&json!(RandomBytes(vec![1; 4_096])));
        assert!(recorded < 6_000, "{recorded} bytes");
    }

    #[test]
    fn instants_and_civil_times_convert_both_ways() {
        let zoned = to_zone(1_736_908_245_123, "Asia/Shanghai").unwrap();
        assert_eq!((zoned.civil.hour, zoned.offset_seconds, zoned.weekday), (10, 28_800, 3));
        assert_eq!(from_zone(zoned.civil, "Asia/Shanghai").unwrap(), 1_736_908_245_123);
    }

    #[test]
    fn civil_times_out_of_range_are_rejected() {
        let start =
            Civil { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0, millisecond: 0 };
        assert_eq!(from_zone(Civil { millisecond: 999, ..start }, "UTC"), Ok(999));
        for civil in [
            Civil { millisecond: 1_000, ..start },
            // As nanoseconds in 32 bits, this number would wrap to 705 milliseconds.
            Civil { millisecond: 5_000, ..start },
            Civil { millisecond: u16::MAX, ..start },
            Civil { second: 60, ..start },
            Civil { day: u8::MAX, ..start },
            Civil { year: i32::MAX, ..start },
        ] {
            let refused = from_zone(civil, "UTC").unwrap_err();
            assert_eq!(refused.code, code::INVALID, "{civil:?}");
        }
    }

    #[test]
    fn gaps_resolve_to_the_later_instant_and_unknown_zones_are_rejected() {
        let gap =
            Civil { year: 2025, month: 3, day: 30, hour: 2, minute: 30, second: 0, millisecond: 0 };
        let instant = from_zone(gap, "Europe/Berlin").unwrap();
        assert_eq!(to_zone(instant, "Europe/Berlin").unwrap().civil.hour, 3);
        assert_eq!(to_zone(0, "Mars/Base").unwrap_err().code, code::INVALID);
    }
}
