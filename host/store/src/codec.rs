//! How every record becomes bytes: JSON, compressed with LZ4 where that pays.
//!
//! A packed record is one byte that says how (0: plain, 1: LZ4 with the plain length before it)
//! and the bytes. JSON, since records hold free JSON anyway and stay readable for any tool.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use wattle_graph::id::Digest;
use wattle_run::ports::store::StoreError;

use crate::error::corrupt;
use crate::mention::look;

/// Deepest nesting a record may have: the JSON reader refuses deeper ones, so they must not be
/// written either.
pub(crate) const DEPTH_LIMIT: usize = 127;

/// Largest record in bytes of JSON: state this large belongs into blobs.
pub(crate) const RECORD_LIMIT_BYTES: usize = 512 * 1024 * 1024;

/// Shorter records gain nothing from compression.
const COMPRESS_FROM_BYTES: usize = 512;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;

/// Packs the records of one batch and notes the blobs they mention.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    /// Digests of all blobs mentioned so far.
    pub(crate) mentions: BTreeSet<Digest>,
}

impl Packer {
    /// Packs a record, or says why it cannot be stored.
    pub(crate) fn pack<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<Vec<u8>, String> {
        self.json(record).map(|json| compress(&json))
    }

    /// The length of a record in JSON, or why it cannot be stored.
    pub(crate) fn measure<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<u64, String> {
        self.json(record).map(|json| json.len() as u64)
    }

    /// A record as JSON, or why it cannot be stored.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<Vec<u8>, String> {
        let json = serde_json::to_vec(record).map_err(|error| error.to_string())?;
        if json.len() > RECORD_LIMIT_BYTES {
            let limit = RECORD_LIMIT_BYTES >> 20;
            return Err(format!("{} bytes in one record, more than {limit} MiB", json.len()));
        }
        let sight = look(&json);
        if sight.depth > DEPTH_LIMIT {
            return Err(format!("values nested {} deep, at most {DEPTH_LIMIT}", sight.depth));
        }
        self.mentions.extend(sight.blobs.into_iter().map(|blob| blob.0));
        Ok(json)
    }
}

/// Reads a packed record; `what` names it in errors.
pub(crate) fn unpack<T: DeserializeOwned>(what: &str, packed: &[u8]) -> Result<T, StoreError> {
    let json = plain(what, packed)?;
    serde_json::from_slice(&json).map_err(|error| corrupt(what, error))
}

/// JSON as it is stored: shorter where that pays.
pub(crate) fn compress(json: &[u8]) -> Vec<u8> {
    if json.len() >= COMPRESS_FROM_BYTES {
        let packed = lz4_flex::block::compress_prepend_size(json);
        // An eighth saved is worth the time to decompress.
        if packed.len() < json.len() - json.len() / 8 {
            return tagged(LZ4, &packed);
        }
    }
    tagged(PLAIN, json)
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(bytes.len() + 1);
    packed.push(tag);
    packed.extend_from_slice(bytes);
    packed
}

/// The JSON of a packed record; `what` names it in errors.
pub(crate) fn plain<'a>(what: &str, packed: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
    match packed.split_first() {
        Some((&PLAIN, json)) => Ok(Cow::Borrowed(json)),
        Some((&LZ4, compressed)) => {
            let (size, block) = lz4_flex::block::uncompressed_size(compressed)
                .map_err(|error| corrupt(what, error))?;
            if size > RECORD_LIMIT_BYTES {
                return Err(corrupt(what, format!("it claims to have {size} bytes")));
            }
            lz4_flex::block::decompress(block, size)
                .map(Cow::Owned)
                .map_err(|error| corrupt(what, error))
        }
        Some((tag, _)) => Err(corrupt(what, format!("it is packed in unknown way {tag}"))),
        None => Err(corrupt(what, "it is empty")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn large_records_are_compressed_and_come_back() {
        let value = json!({ "text": "to and fro ".repeat(1000) });
        let packed = Packer::default().pack(&value).unwrap();
        assert!(packed.len() < 500, "{}", packed.len());
        assert_eq!(unpack::<Value>("x", &packed).unwrap(), value);
    }

    #[test]
    fn what_could_not_be_read_is_not_written() {
        let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
        let mut packer = Packer::default();
        let packed = packer.pack(&nested(DEPTH_LIMIT)).unwrap();
        assert!(unpack::<Value>("x", &packed).is_ok());
        assert!(packer.pack(&nested(DEPTH_LIMIT + 1)).is_err());
    }

    #[test]
    fn damaged_records_are_typed_errors() {
        for bytes in [&b""[..], b"\x02{}", b"\x00{", b"\x01", b"\x01\xff\xff\xff\xff{}"] {
            let error = unpack::<Value>("thing", bytes).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { what, .. } if what == "thing"));
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back_to_the_last_bit(number in any::<f64>()) {
            let value = json!(number);
            let packed = Packer::default().pack(&value).unwrap();
            prop_assert_eq!(unpack::<Value>("x", &packed).unwrap(), value);
        }
    }
}
