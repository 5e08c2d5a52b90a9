//! Calls of `clock`.

use crate::bindings::imports::wattle::plugin::clock as raw;
pub(crate) use crate::bindings::imports::wattle::plugin::clock::{monotonic, now, time_zone};
use crate::clock::{Civil, Zoned};
use crate::failure::Failure;

pub(crate) fn to_zone(unix_ms: i64, zone: Option<&str>) -> Result<Zoned, Failure> {
    let zoned = raw::to_zone(unix_ms, zone)?;
    let raw::Civil { year, month, day, hour, minute, second, millisecond } = zoned.civil;
    Ok(Zoned {
        civil: Civil { year, month, day, hour, minute, second, millisecond },
        offset_seconds: zoned.offset_seconds,
        weekday: zoned.weekday,
        zone: zoned.zone,
    })
}

pub(crate) fn from_zone(civil: Civil, zone: Option<&str>) -> Result<i64, Failure> {
    let Civil { year, month, day, hour, minute, second, millisecond } = civil;
    let civil = raw::Civil { year, month, day, hour, minute, second, millisecond };
    Ok(raw::from_zone(civil, zone)?)
}
