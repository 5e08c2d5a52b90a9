//! Bytes in JSON: as a string if they are UTF-8, otherwise as base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BytesRepr {
    Text(String),
    Base64(String),
}

/// Serializes bytes; for `#[serde(with = "...")]`.
///
/// # Errors
///
/// Errors of the serializer.
pub fn serialize<S: serde::Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => BytesRepr::Text(text.to_owned()),
        Err(_) => BytesRepr::Base64(STANDARD.encode(bytes)),
    }
    .serialize(serializer)
}

/// Deserializes bytes; for `#[serde(with = "...")]`.
///
/// # Errors
///
/// Errors of the deserializer, and invalid base64.
pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    match BytesRepr::deserialize(deserializer)? {
        BytesRepr::Text(text) => Ok(Bytes::from(text)),
        BytesRepr::Base64(text) => {
            STANDARD.decode(text).map(Bytes::from).map_err(serde::de::Error::custom)
        }
    }
}
