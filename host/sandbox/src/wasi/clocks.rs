//! WASI clocks: the time of the gate, or constants for a guest without a gate.

use wasmtime::component::Resource;
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock::{self, Duration, Instant};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::{self, Datetime};

use crate::host_state::{HostState, WasiSource};
use crate::import_error::TrapReason;
use crate::wasi::constants::WALL_CLOCK_SECONDS;

/// Resolution of the wall clock in nanoseconds. The clock counts milliseconds.
const WALL_RESOLUTION_NS: u32 = 1_000_000;

impl wall_clock::Host for HostState {
    fn now(&mut self) -> wasmtime::Result<Datetime> {
        let WasiSource::Gate(gate) = self.wasi_source() else {
            return Ok(Datetime { seconds: WALL_CLOCK_SECONDS, nanoseconds: 0 });
        };
        let now_ms = gate.now_ms().map_err(TrapReason::Unwind)?;
        // WASI cannot express time before 1970.
        let now_ms = u64::try_from(now_ms).unwrap_or(0);
        Ok(Datetime {
            seconds: now_ms / 1_000,
            nanoseconds: (now_ms % 1_000) as u32 * WALL_RESOLUTION_NS,
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<Datetime> {
        Ok(Datetime { seconds: 0, nanoseconds: WALL_RESOLUTION_NS })
    }
}

impl monotonic_clock::Host for HostState {
    fn now(&mut self) -> wasmtime::Result<Instant> {
        match self.wasi_source() {
            WasiSource::Gate(gate) => Ok(gate.monotonic_ns().map_err(TrapReason::Unwind)?),
            WasiSource::Constants(constants) => Ok(constants.monotonic_ns()),
        }
    }

    fn resolution(&mut self) -> wasmtime::Result<Duration> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, when: Instant) -> wasmtime::Result<Resource<DynPollable>> {
        let now = monotonic_clock::Host::now(self)?;
        self.subscribe_duration(when.saturating_sub(now))
    }

    fn subscribe_duration(&mut self, when: Duration) -> wasmtime::Result<Resource<DynPollable>> {
        let wait = match self.wasi_source() {
            WasiSource::Gate(_) => when,
            // Nothing meters the time for which a guest without a gate waits, so the guest does not
            // wait. Only its clock advances.
            WasiSource::Constants(constants) => {
                constants.advance(when);
                0
            }
        };
        monotonic_clock::Host::subscribe_duration(&mut self.clocks(), wait)
    }
}
