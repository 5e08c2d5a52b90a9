//! Implements `clock` with a stopped clock and zones with fixed offsets.

use crate::clock::{Civil, Zoned};
use crate::failure::Failure;
use crate::testing::answer::infallible;
use crate::testing::civil;
use crate::testing::state::{State, with};

pub(crate) fn now() -> i64 {
    infallible(|state| state.now_ms)
}

pub(crate) fn monotonic() -> u64 {
    infallible(|state| state.monotonic_ns)
}

pub(crate) fn time_zone() -> String {
    infallible(|state| find(state, None).map(|(name, _)| name).unwrap_or_default())
}

pub(crate) fn to_zone(unix_ms: i64, zone: Option<&str>) -> Result<Zoned, Failure> {
    let (name, offset_seconds) = known(zone)?;
    Ok(civil::to_zone(unix_ms, &name, offset_seconds))
}

pub(crate) fn from_zone(civil: Civil, zone: Option<&str>) -> Result<i64, Failure> {
    Ok(civil::from_zone(civil, known(zone)?.1))
}

fn known(zone: Option<&str>) -> Result<(String, i32), Failure> {
    with(|state| find(state, zone))?.ok_or_else(|| {
        let zone = zone.unwrap_or_default();
        Failure::invalid(format!("there is no time zone `{zone}`; add it with `FakeHost::zone`"))
    })
}

/// Returns the time zone with a name that was set last, or the time zone that was set last.
fn find(state: &State, zone: Option<&str>) -> Option<(String, i32)> {
    let mut zones = state.zones.iter().rev();
    zones.find(|(name, _)| zone.is_none_or(|zone| zone == name)).cloned()
}
