//! `wattle:plugin/clock`: time, which the gate returns without waiting.

use wattle_run::hostcall::clock::{Civil, FROM_ZONE, MONOTONIC, NOW, TIME_ZONE, TO_ZONE, Zoned};

use crate::bindings::wattle::plugin::clock;
use crate::host_state::HostState;
use crate::import_error::{ImportError, TrapReason};

impl clock::Host for HostState {
    fn now(&mut self) -> wasmtime::Result<i64> {
        Ok(self.gate(NOW)?.now_ms().map_err(TrapReason::Unwind)?)
    }

    fn monotonic(&mut self) -> wasmtime::Result<u64> {
        Ok(self.gate(MONOTONIC)?.monotonic_ns().map_err(TrapReason::Unwind)?)
    }

    fn time_zone(&mut self) -> wasmtime::Result<String> {
        Ok(self.gate(TIME_ZONE)?.time_zone().map_err(TrapReason::Unwind)?)
    }

    fn to_zone(&mut self, unix_ms: i64, zone: Option<String>) -> Result<clock::Zoned, ImportError> {
        let zoned = self.gate(TO_ZONE)?.to_zone(unix_ms, zone.as_deref())?;
        Ok(from_zoned(zoned))
    }

    fn from_zone(&mut self, civil: clock::Civil, zone: Option<String>) -> Result<i64, ImportError> {
        let gate = self.gate(FROM_ZONE)?;
        Ok(gate.from_zone(into_civil(civil), zone.as_deref())?)
    }
}

fn into_civil(civil: clock::Civil) -> Civil {
    Civil {
        year: civil.year,
        month: civil.month,
        day: civil.day,
        hour: civil.hour,
        minute: civil.minute,
        second: civil.second,
        millisecond: civil.millisecond,
    }
}

fn from_zoned(zoned: Zoned) -> clock::Zoned {
    clock::Zoned {
        civil: clock::Civil {
            year: zoned.civil.year,
            month: zoned.civil.month,
            day: zoned.civil.day,
            hour: zoned.civil.hour,
            minute: zoned.civil.minute,
            second: zoned.civil.second,
            millisecond: zoned.civil.millisecond,
        },
        offset_seconds: zoned.offset_seconds,
        weekday: zoned.weekday,
        zone: zoned.zone,
    }
}
