//! WASI random numbers, taken from the gate.

use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::unwind::Unwind;
use wattle_run::limit;

use crate::host_state::HostState;
use crate::import_error::TrapReason;

const FUNCTION: &str = "wasi:random";

/// Maximum number of random bytes of one WASI call. Every byte is journaled, and guests need seeds,
/// not streams.
const MAX_CALL_BYTES: u64 = 64 << 10;

impl HostState {
    fn random_bytes(&mut self, length: u64) -> Result<Vec<u8>, TrapReason> {
        if length > MAX_CALL_BYTES {
            let message = format!(
                "`{FUNCTION}`: {length} random bytes are more than the limit of {MAX_CALL_BYTES}"
            );
            let details = serde_json::json!({ "limit": "random", "allowed": MAX_CALL_BYTES });
            let failure = Failure::new(code::LIMIT, message).with_details(details);
            return Err(TrapReason::Unwind(Unwind::Limit(failure)));
        }
        let gate = self.gate(FUNCTION)?;
        let mut bytes = Vec::with_capacity(length as usize);
        while (bytes.len() as u64) < length {
            let missing = (length - bytes.len() as u64).min(u64::from(limit::RANDOM_BYTES));
            let piece = gate.random(missing as u32).map_err(TrapReason::Unwind)?;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}

impl random::Host for HostState {
    fn get_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        Ok(self.random_bytes(length)?)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random_u64(FUNCTION)?)
    }
}

impl insecure::Host for HostState {
    fn get_insecure_random_bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        Ok(self.random_bytes(length)?)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.random_u64(FUNCTION)?)
    }
}

impl insecure_seed::Host for HostState {
    /// Returns a seed. Guests call this function when they start, also to describe themselves. A
    /// guest without a gate gets a fixed seed.
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        if self.gate(FUNCTION).is_err() {
            return Ok((0, 0));
        }
        Ok((self.random_u64(FUNCTION)?, self.random_u64(FUNCTION)?))
    }
}
