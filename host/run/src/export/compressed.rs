//! Bytes in an export: compressed with LZ4, in base64.

use std::ops::Deref;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lz4_flex::block::{compress, decompress};
use serde::{Deserialize, Serialize};

use crate::limit;

/// Maximum compression ratio of LZ4. A length that claims a higher ratio is refused before memory
/// is allocated.
const LZ4_RATIO: u64 = 255;

/// Bytes that are serialized in compressed form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CompressedRepr", into = "CompressedRepr")]
pub struct CompressedBytes(pub Bytes);

impl Deref for CompressedBytes {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.0
    }
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
struct CompressedRepr {
    /// Uncompressed length in bytes.
    length: u64,
    lz4: String,
}

impl From<CompressedBytes> for CompressedRepr {
    fn from(packed: CompressedBytes) -> Self {
        let lz4 = STANDARD.encode(compress(&packed));
        Self { length: packed.len() as u64, lz4 }
    }
}

impl TryFrom<CompressedRepr> for CompressedBytes {
    type Error = String;

    fn try_from(form: CompressedRepr) -> Result<Self, String> {
        if form.length > limit::EXPORT_BYTES {
            return Err(format!("the data unpacks to {} bytes, more than the limit", form.length));
        }
        let block = STANDARD.decode(&form.lz4).map_err(|error| error.to_string())?;
        if form.length > block.len() as u64 * LZ4_RATIO {
            return Err(format!("{} bytes cannot unpack to {}", block.len(), form.length));
        }
        // Decompression fails if the block holds more than `length` bytes.
        let bytes = decompress(&block, form.length as usize).map_err(|error| error.to_string())?;
        if bytes.len() as u64 != form.length {
            return Err(format!("the data unpacks to {} bytes, not {}", bytes.len(), form.length));
        }
        Ok(Self(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bytes_round_trip_and_check_length() {
        let packed = CompressedBytes(Bytes::from(b"wasm ".repeat(100)));
        let text = serde_json::to_string(&packed).unwrap();
        assert!(text.len() < 200, "{text}");
        assert_eq!(serde_json::from_str::<CompressedBytes>(&text).unwrap(), packed);
        for length in ["499", "501", "99999999", "9999999999999"] {
            let lie = text.replacen("500", length, 1);
            assert_ne!(lie, text);
            assert!(serde_json::from_str::<CompressedBytes>(&lie).is_err(), "{length}");
        }
        // Half of the limit of an export, from a few bytes.
        let error = serde_json::from_str::<CompressedBytes>(&text.replacen("500", "536870912", 1));
        assert!(error.unwrap_err().to_string().contains("cannot unpack to 536870912"));
    }
}
