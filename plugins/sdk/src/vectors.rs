//! Inputs and outputs that are the same in the SDKs for Rust, TypeScript and Python.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The cases by function. The tests of the other SDKs read this file, too.
const VECTORS: &str = include_str!("../vectors.json");

/// Returns the cases of a function.
pub(crate) fn vectors<T: DeserializeOwned>(function: &str) -> T {
    let mut all: Value = serde_json::from_str(VECTORS).unwrap();
    serde_json::from_value(all[function].take()).unwrap()
}
