//! The encoding of records: JSON, compressed with LZ4 where that saves space.
//!
//! A packed record is a tag byte (0: plain, 1: LZ4, with the plain length before the data) and the
//! data. The format is JSON, since records contain JSON of guests and clients, and other tools can
//! read JSON.
//!
//! A checked record is the byte 2, a checksum and a packed record. The checksum also covers the
//! table and the key, so the checksum of a record that is stored under another key does not match.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;

use lz4_flex::block::{self, CompressTable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wattle_graph::id::Digest;
use wattle_graph::json_text;
use wattle_run::ports::store::{EncodedEvents, StoreError};

use crate::error::corrupt;
use crate::json_scan::{needs_no_scan, scan_json};

/// Maximum nesting depth of a record. The JSON parser rejects deeper records, so the store must not
/// write them.
pub(crate) const MAX_DEPTH: usize = 127;

/// Maximum size of a record in bytes of JSON. Larger state belongs in blobs.
pub(crate) const MAX_RECORD_BYTES: usize = 512 * 1024 * 1024;

/// Minimum size of a record that is compressed, in bytes of JSON. Compression saves no space on
/// shorter records.
const MIN_COMPRESS_BYTES: usize = 512;

/// Initial capacity for the JSON of a record, in bytes. Most metadata and values have less.
const JSON_CAPACITY: usize = 1 << 9;

/// Maximum number of bytes to which LZ4 decompresses one byte. A record whose plain length is
/// larger is damaged, and no memory is allocated for it.
const MAX_LZ4_RATIO: usize = 255;

/// Minimum size of a record for which LZ4 uses a larger hash table, in bytes of JSON.
const LARGE_TABLE_BYTES: usize = u16::MAX as usize;

/// Initial capacity for a plain record, in bytes. Most records have less.
const PLAIN_CAPACITY: usize = 1 << 10;

/// Maximum spare capacity of a plain record, which waits for its commit, in bytes.
const MAX_SPARE_BYTES: usize = 64 * 1024;

const PLAIN: u8 = 0;
const LZ4: u8 = 1;
const CHECKED: u8 = 2;

/// Length of a checksum in bytes. A damaged record matches a checksum of this length with a
/// probability of 2^-64.
pub(crate) const CHECKSUM_BYTES: usize = 8;

/// A checksum: the first bytes of a BLAKE3 digest.
pub(crate) type Checksum = [u8; CHECKSUM_BYTES];

/// Returns the checksum of several byte strings. The hash includes the length of each byte string,
/// so the checksum changes if a byte moves from one string to the next.
pub(crate) fn checksum(parts: &[&[u8]]) -> Checksum {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut check = [0; CHECKSUM_BYTES];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..CHECKSUM_BYTES]);
    check
}

/// Returns a packed record with a checksum that covers the table, the key and the record.
pub(crate) fn with_checksum(table: &str, key: &[u8], packed: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + CHECKSUM_BYTES + packed.len());
    stored.push(CHECKED);
    stored.extend(checksum(&[table.as_bytes(), key, packed]));
    stored.extend(packed);
    stored
}

/// Returns whether a stored record has a checksum. Records of older formats have none.
pub(crate) fn has_checksum(stored: &[u8]) -> bool {
    stored.first() == Some(&CHECKED)
}

/// Returns the packed record inside of a stored record. Compares the checksum if the stored record
/// has one.
pub(crate) fn packed<'a>(
    what: &str,
    (table, key): (&str, &[u8]),
    stored: &'a [u8],
) -> Result<&'a [u8], StoreError> {
    if !has_checksum(stored) {
        return Ok(stored);
    }
    let Some((check, packed)) = stored[1..].split_at_checked(CHECKSUM_BYTES) else {
        return Err(corrupt(named(what, key), "it is truncated"));
    };
    if checksum(&[table.as_bytes(), key, packed]) == check {
        Ok(packed)
    } else {
        Err(corrupt(named(what, key), "its checksum does not match"))
    }
}

/// Decodes the record under a key of a table. Errors name the record by `what` and the key.
pub(crate) fn read<T: DeserializeOwned>(
    what: &str,
    (table, key): (&str, &[u8]),
    stored: &[u8],
) -> Result<T, StoreError> {
    unpack(what, packed(what, (table, key), stored)?).map_err(|error| match error {
        StoreError::Corrupt { message, .. } => corrupt(named(what, key), message),
        error => error,
    })
}

/// Names a record by its kind and key.
pub(crate) fn named(what: &str, key: &[u8]) -> String {
    format!("{what} `{}`", String::from_utf8_lossy(key))
}

/// A record in two forms: the JSON, which the seal covers, and the packed record, which is stored.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// The plain record, which is the packed record if that is not compressed.
    plain: Vec<u8>,
    /// The packed record, if it is compressed.
    compressed: Option<Vec<u8>>,
}

impl Encoded {
    fn new(plain: Vec<u8>) -> Self {
        let compressed = compress_lz4(json_of(&plain));
        Self { plain, compressed }
    }

    /// Returns the JSON.
    pub(crate) fn json(&self) -> &[u8] {
        json_of(&self.plain)
    }

    /// Returns the packed record.
    pub(crate) fn into_packed(self) -> Vec<u8> {
        self.compressed.unwrap_or(self.plain)
    }
}

/// Returns the JSON of a plain record.
fn json_of(plain: &[u8]) -> &[u8] {
    plain.get(1..).unwrap_or_default()
}

/// Packs the records of one batch and collects the blobs that the records mention.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    /// Digests of all blobs mentioned so far.
    pub(crate) mentions: BTreeSet<Digest>,
}

impl Packer {
    /// Packs a record. The error says why it cannot be stored.
    pub(crate) fn pack<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<Vec<u8>, String> {
        self.encode(record).map(Encoded::into_packed)
    }

    /// Encodes a record that is sealed. The error says why it cannot be stored.
    pub(crate) fn encode<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<Encoded, String> {
        self.encode_with(|json| serde_json::to_writer(json, record))
    }

    /// Encodes a record whose JSON `append` appends. The error says why it cannot be stored.
    pub(crate) fn encode_with(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<Encoded, String> {
        let mut plain = Vec::with_capacity(PLAIN_CAPACITY);
        plain.push(PLAIN);
        append(&mut plain).map_err(|error| error.to_string())?;
        self.check_json(json_of(&plain))?;
        if plain.capacity() - plain.len() > MAX_SPARE_BYTES {
            plain.shrink_to_fit();
        }
        Ok(Encoded::new(plain))
    }

    /// Packs the events of a batch. Returns their JSON and the packed list; both are empty without
    /// events. The error says why they cannot be stored.
    pub(crate) fn events<'e>(
        &mut self,
        events: &'e EncodedEvents,
    ) -> Result<(&'e [u8], Vec<u8>), String> {
        let json = events.json()?;
        self.check_json(json)?;
        Ok((json, if events.is_empty() { Vec::new() } else { compress(json) }))
    }

    /// Returns the length of a record in bytes of JSON. The error says why it cannot be stored.
    pub(crate) fn measure<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<u64, String> {
        self.json(record).map(|json| json.len() as u64)
    }

    /// Encodes a record as JSON. The error says why it cannot be stored.
    pub(crate) fn json<T: Serialize + ?Sized>(&mut self, record: &T) -> Result<Vec<u8>, String> {
        self.json_with(|json| serde_json::to_writer(json, record))
    }

    /// Returns the JSON of a record, which `append` appends. The error says why it cannot be
    /// stored.
    pub(crate) fn json_with(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<Vec<u8>, String> {
        let mut json = Vec::with_capacity(JSON_CAPACITY);
        append(&mut json).map_err(|error| error.to_string())?;
        self.check_json(&json)?;
        Ok(json)
    }

    /// Checks the JSON of a record. The error says why it cannot be stored.
    pub(crate) fn check_json(&mut self, json: &[u8]) -> Result<(), String> {
        if json.len() > MAX_RECORD_BYTES {
            let limit = MAX_RECORD_BYTES >> 20;
            return Err(format!("a record has {} bytes; the limit is {limit} MiB", json.len()));
        }
        if needs_no_scan(json, MAX_DEPTH) {
            return Ok(());
        }
        let scan = scan_json(json);
        if scan.depth > MAX_DEPTH {
            return Err(format!(
                "a value is nested {} levels deep; the limit is {MAX_DEPTH}",
                scan.depth
            ));
        }
        self.mentions.extend(scan.blobs.into_iter().map(|blob| blob.0));
        Ok(())
    }
}

/// Returns the length of a stored record in bytes of JSON, without holding the JSON in memory.
pub(crate) fn json_bytes<T: Serialize + ?Sized>(record: &T) -> u64 {
    // The record was encoded before it was stored, so encoding cannot fail.
    json_text::length(record).unwrap_or_default()
}

/// Decodes a packed record. Errors name the record by `what`.
pub(crate) fn unpack<T: DeserializeOwned>(what: &str, packed: &[u8]) -> Result<T, StoreError> {
    let json = unpack_json(what, packed)?;
    serde_json::from_slice(&json).map_err(|error| corrupt(what, error))
}

/// Packs JSON, compressed where that saves space.
pub(crate) fn compress(json: &[u8]) -> Vec<u8> {
    compress_lz4(json).unwrap_or_else(|| [&[PLAIN][..], json].concat())
}

/// Returns a packed record that is compressed; `None` if compression does not save enough space.
fn compress_lz4(json: &[u8]) -> Option<Vec<u8>> {
    if json.len() < MIN_COMPRESS_BYTES {
        return None;
    }
    // A saving of less than an eighth does not justify the time of decompression.
    let is_smaller = |bytes: usize| bytes < json.len() - json.len() / 8;
    if json.len() >= LARGE_TABLE_BYTES {
        let sized = block::compress_prepend_size(json);
        return is_smaller(sized.len()).then(|| [&[LZ4][..], &sized].concat());
    }
    BUFFERS.with_borrow_mut(|buffers| {
        let compressed = buffers.compress(json)?;
        let size = (json.len() as u32).to_le_bytes();
        is_smaller(size.len() + compressed.len()).then(|| [&[LZ4][..], &size, compressed].concat())
    })
}

thread_local! {
    /// The buffers of this thread.
    static BUFFERS: RefCell<CompressBuffers> = RefCell::new(CompressBuffers {
        table: CompressTable::small(),
        output: Vec::new(),
    });
}

/// Buffers for the compression of records that need no larger hash table. The allocation of these
/// buffers takes a large part of the time to compress a small record.
struct CompressBuffers {
    table: CompressTable,
    output: Vec<u8>,
}

impl CompressBuffers {
    /// Returns the compressed JSON without its plain length.
    fn compress(&mut self, json: &[u8]) -> Option<&[u8]> {
        let bytes = block::get_maximum_output_size(json.len());
        if self.output.len() < bytes {
            self.output.resize(bytes, 0);
        }
        // Compression fails only if the output is too small.
        let length =
            block::compress_into_with_table(json, &mut self.output, &mut self.table).ok()?;
        self.output.get(..length)
    }
}

/// Returns the length of a packed record in bytes of JSON, without decompressing it.
pub(crate) fn unpacked_bytes(packed: &[u8]) -> u64 {
    match packed.split_first() {
        Some((&LZ4, compressed)) => {
            block::uncompressed_size(compressed).map_or(0, |(size, _)| size as u64)
        }
        Some((_, json)) => json.len() as u64,
        None => 0,
    }
}

/// Returns the JSON of a packed record. Errors name the record by `what`.
pub(crate) fn unpack_json<'a>(what: &str, packed: &'a [u8]) -> Result<Cow<'a, [u8]>, StoreError> {
    match packed.split_first() {
        Some((&PLAIN, json)) => Ok(Cow::Borrowed(json)),
        Some((&LZ4, compressed)) => {
            let (size, data) =
                block::uncompressed_size(compressed).map_err(|error| corrupt(what, error))?;
            if size > MAX_RECORD_BYTES || size > data.len() * MAX_LZ4_RATIO {
                return Err(corrupt(
                    what,
                    format!("its decompressed length cannot be {size} bytes"),
                ));
            }
            block::decompress(data, size).map(Cow::Owned).map_err(|error| corrupt(what, error))
        }
        Some((tag, _)) => Err(corrupt(what, format!("its encoding {tag} is unknown"))),
        None => Err(corrupt(what, "it is empty")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use serde_json::{Value, json};
    use wattle_graph::checkpoint::ChannelValue;

    use super::*;

    #[test]
    fn large_records_are_compressed_and_round_trip() {
        let value = json!({ "text": "to and fro ".repeat(1000) });
        let packed = Packer::default().pack(&value).unwrap();
        assert!(packed.len() < 500, "{}", packed.len());
        assert_eq!(unpack::<Value>("x", &packed).unwrap(), value);
    }

    /// Returns text without a pattern.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b' ' + (state >> 24) as u8 % 90
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn records_are_compressed_as_by_lz4_without_buffers() {
        let lengths = [0, 1, 511, 512, 513, 9_000, 1_000, 65_534, 65_535, 70_000, 600];
        for length in lengths {
            let pattern: Vec<u8> = b"to and fro ".iter().copied().cycle().take(length).collect();
            for (text, is_compressible) in [(pattern, length >= 512), (noise(length), false)] {
                let packed = compress(&text);
                assert_eq!(unpack_json("text", &packed).unwrap(), text);
                let sized = block::compress_prepend_size(&text);
                let plain = [&[PLAIN][..], &text].concat();
                let wanted =
                    if is_compressible { [&[LZ4][..], &sized].concat() } else { plain.clone() };
                assert_eq!(packed, wanted, "{length}");
                let encoded = Encoded::new(plain);
                assert_eq!(encoded.json(), text);
                assert_eq!(encoded.into_packed(), packed);
            }
        }
    }

    #[test]
    fn encoded_records_have_their_json_and_are_packed() {
        for length in [0, 10, 10_000] {
            let value = json!({ "text": "x".repeat(length) });
            let encoded = Packer::default().encode(&value).unwrap();
            assert_eq!(encoded.json(), value.to_string().as_bytes());
            assert_eq!(encoded.compressed.is_some(), length > 1_000);
            assert_eq!(encoded.into_packed(), Packer::default().pack(&value).unwrap());
        }
    }

    #[test]
    fn values_of_channels_are_encoded_as_records() {
        for length in [0, 10, 10_000] {
            for value in [json!("x".repeat(length)), json!([1, "x".repeat(length)])] {
                let packed = Packer::default().pack(&value).unwrap();
                let text = value.to_string().into_bytes();
                let value = ChannelValue::from(value);
                let append = |json: &mut Vec<u8>| value.append_text(json);
                let encoded = Packer::default().encode_with(append).unwrap();
                assert_eq!(encoded.json(), text);
                assert_eq!(encoded.into_packed(), packed);
                assert_eq!(Packer::default().json_with(append).unwrap(), text);
            }
        }
    }

    #[test]
    fn too_deeply_nested_records_are_rejected() {
        let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
        let mut packer = Packer::default();
        let packed = packer.pack(&nested(MAX_DEPTH)).unwrap();
        assert!(unpack::<Value>("x", &packed).is_ok());
        assert!(packer.pack(&nested(MAX_DEPTH + 1)).is_err());
    }

    #[test]
    fn reading_a_damaged_record_returns_corrupt() {
        for bytes in [&b""[..], b"\x02{}", b"\x00{", b"\x01", b"\x01\xff\xff\xff\xff{}"] {
            let error = unpack::<Value>("thing", bytes).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { what, .. } if what == "thing"));
        }
    }

    #[test]
    fn impossible_sizes_are_rejected_before_allocation() {
        let packed = [&[LZ4][..], &(256_u32 << 20).to_le_bytes(), b"0123"].concat();
        let error = unpack::<Value>("thing", &packed).unwrap_err().to_string();
        assert!(error.contains("decompressed length cannot be 268435456 bytes"), "{error}");
        // Data with the best compression ratio are accepted.
        let zeros = vec![0; 100_000];
        let packed = compress(&zeros);
        assert_eq!(unpack_json("zeros", &packed).unwrap(), zeros);
    }

    #[test]
    fn checksum_covers_table_key_and_record() {
        let packed = Packer::default().pack(&json!({ "a": 1 })).unwrap();
        let stored = with_checksum("records", b"t", &packed);
        let location = |key: &'static [u8]| ("records", key);
        assert_eq!(read::<Value>("record", location(b"t"), &stored).unwrap(), json!({ "a": 1 }));
        assert!(read::<Value>("record", location(b"u"), &stored).is_err(), "another key");
        assert!(read::<Value>("record", ("heads", b"t"), &stored).is_err(), "another table");
        for at in 0..stored.len() {
            for bit in 0..8 {
                let mut damaged = stored.clone();
                damaged[at] ^= 1 << bit;
                let error = read::<Value>("record", location(b"t"), &damaged).unwrap_err();
                assert!(error.to_string().contains("record `t`"), "{error}");
            }
        }
        for length in 0..stored.len() {
            assert!(read::<Value>("record", location(b"t"), &stored[..length]).is_err());
        }
    }

    proptest! {
        #[test]
        fn floats_round_trip_exactly(number in any::<f64>()) {
            let value = json!(number);
            let packed = Packer::default().pack(&value).unwrap();
            prop_assert_eq!(unpack::<Value>("x", &packed).unwrap(), value);
        }
    }
}
