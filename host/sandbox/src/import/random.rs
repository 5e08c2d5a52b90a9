//! `wattle:plugin/random`: random numbers, journaled by the gate.

use wattle_run::hostcall::clock::RANDOM;
use wattle_run::limit;

use crate::bindings::wattle::plugin::random;
use crate::host_state::HostState;
use crate::import_error::TrapReason;

impl random::Host for HostState {
    fn bytes(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        let length = length.min(limit::RANDOM_BYTES);
        Ok(self.gate(RANDOM)?.random(length).map_err(TrapReason::Unwind)?)
    }

    fn u64(&mut self) -> wasmtime::Result<u64> {
        Ok(bits(&self.gate("random.u64")?.random(8).map_err(TrapReason::Unwind)?))
    }
}

/// Returns eight bytes as a number, with the most significant byte first.
pub(crate) fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
}
