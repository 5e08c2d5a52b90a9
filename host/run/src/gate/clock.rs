//! Time and random numbers. These calls return without waiting.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wattle_graph::failure::Failure;

use crate::gate::Gate;
use crate::gate::pipeline::decode_output;
use crate::gate::unwind::{CallError, Unwind};
use crate::hostcall::clock::{
    Civil, FROM_ZONE, MONOTONIC, NOW, RANDOM, RandomBytes, TIME_ZONE, TO_ZONE, Zoned, from_zone,
    to_zone,
};
use crate::hostcall::request::CallRequest;
use crate::limit;

impl Gate {
    /// Makes a call that can fail.
    pub(super) fn call_fallible<T: DeserializeOwned>(
        &self,
        function: &'static str,
        request: Value,
        answer: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<T, CallError> {
        let answer = self.call_immediate(CallRequest::small(function, request), answer)?;
        Ok(decode_output(function, answer?)?)
    }

    /// Makes a call that cannot fail.
    fn call_infallible<T: DeserializeOwned + Default>(
        &self,
        function: &'static str,
        request: Value,
        answer: impl FnOnce() -> Value,
    ) -> Result<T, Unwind> {
        let answer = self.call_immediate(CallRequest::small(function, request), || Ok(answer()))?;
        Ok(serde_json::from_value(answer.map_err(Unwind::LogLost)?).unwrap_or_default())
    }

    /// Returns the current time in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound.
    pub fn now_ms(&self) -> Result<i64, Unwind> {
        self.call_infallible(NOW, Value::Null, || json!(self.env.ports.clock.now_ms()))
    }

    /// Returns a monotonic time in nanoseconds.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound.
    pub fn monotonic_ns(&self) -> Result<u64, Unwind> {
        let clock = &self.env.ports.clock;
        self.call_infallible(MONOTONIC, Value::Null, || json!(clock.monotonic_ns()))
    }

    /// Returns the operator's time zone.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound.
    pub fn time_zone(&self) -> Result<String, Unwind> {
        self.call_infallible(TIME_ZONE, Value::Null, || json!(self.env.ports.clock.time_zone()))
    }

    /// Converts an instant to civil time. The default zone is the operator's.
    ///
    /// # Errors
    ///
    /// `invalid` for an unknown zone or an instant out of range.
    pub fn to_zone(&self, unix_ms: i64, zone: Option<&str>) -> Result<Zoned, CallError> {
        let zone = zone.unwrap_or_else(|| self.env.ports.clock.time_zone());
        self.call_fallible(TO_ZONE, json!([unix_ms, zone]), || {
            to_zone(unix_ms, zone).map(|zoned| json!(zoned))
        })
    }

    /// Converts a civil time to an instant. The default zone is the operator's.
    ///
    /// # Errors
    ///
    /// `invalid` for an unknown zone or a date that does not exist.
    pub fn from_zone(&self, civil: Civil, zone: Option<&str>) -> Result<i64, CallError> {
        let zone = zone.unwrap_or_else(|| self.env.ports.clock.time_zone());
        self.call_fallible(FROM_ZONE, json!([civil, zone]), || {
            from_zone(civil, zone).map(|unix_ms| json!(unix_ms))
        })
    }

    /// Returns random bytes, at most [`limit::RANDOM_BYTES`].
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound.
    pub fn random(&self, length: u32) -> Result<Vec<u8>, Unwind> {
        let length = length.min(limit::RANDOM_BYTES);
        let answer = || json!(RandomBytes(random_bytes(length)));
        let RandomBytes(bytes) = self.call_infallible(RANDOM, json!(length), answer)?;
        Ok(bytes)
    }
}

/// Returns random bytes of the operating system. Their source is random UUIDs, which have 122
/// random bits each, so each 32 bytes are the hash of two UUIDs.
fn random_bytes(length: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length as usize + 32);
    while bytes.len() < length as usize {
        let (one, two) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
        let seed = [one.as_bytes().as_slice(), two.as_bytes().as_slice()].concat();
        bytes.extend_from_slice(blake3::hash(&seed).as_bytes());
    }
    bytes.truncate(length as usize);
    bytes
}
