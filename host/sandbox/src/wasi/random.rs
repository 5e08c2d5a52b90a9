//! WASI random numbers: from the gate, or constants for a guest without a gate.

use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wattle_run::limit;

use crate::host_state::{HostState, WasiSource};
use crate::import::random::bits;
use crate::import_error::TrapReason;
use crate::wasi::constants::MAX_RANDOM_BYTES;

/// Maximum number of random bytes of one WASI call. Every byte is journaled, and guests need seeds,
/// not streams.
const MAX_CALL_BYTES: u64 = 64 << 10;

impl HostState {
    fn wasi_random_bytes(&mut self, length: u64) -> Result<Vec<u8>, TrapReason> {
        if length > MAX_CALL_BYTES {
            return Err(TrapReason::RandomLimit(MAX_CALL_BYTES));
        }
        let gate = match self.wasi_source() {
            WasiSource::Gate(gate) => gate,
            WasiSource::Constants(constants) => {
                let bytes = constants.random(length);
                return bytes.ok_or(TrapReason::RandomLimit(MAX_RANDOM_BYTES));
            }
        };
        let mut bytes = Vec::with_capacity(length as usize);
        while (bytes.len() as u64) < length {
            let missing = (length - bytes.len() as u64).min(u64::from(limit::RANDOM_BYTES));
            let piece = gate.random(missing as u32).map_err(TrapReason::Unwind)?;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn wasi_random_u64(&mut self) -> Result<u64, TrapReason> {
        Ok(bits(&self.wasi_random_bytes(8)?))
    }
}

impl random::Host for HostState {
    fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        Ok(self.wasi_random_bytes(length)?)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi_random_u64()?)
    }
}

impl insecure::Host for HostState {
    fn get_insecure_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        Ok(self.wasi_random_bytes(length)?)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi_random_u64()?)
    }
}

impl insecure_seed::Host for HostState {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.wasi_random_u64()?, self.wasi_random_u64()?))
    }
}
