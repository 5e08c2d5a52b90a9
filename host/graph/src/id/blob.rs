//! References to blobs.

use serde::{Deserialize, Serialize};

use crate::id::Digest;

/// Prefix of a blob reference in state and messages. 64 hexadecimal digits follow it.
const BLOB_SCHEME: &str = "blob:";

/// Hexadecimal digits of a blob's digest.
const DIGEST_DIGITS: usize = 64;

/// A reference to a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobRef(pub Digest);

impl BlobRef {
    /// Parses `blob:<64 hex digits>`.
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix(BLOB_SCHEME)?.parse().ok().map(Self)
    }

    /// Returns whether `text` may have a blob reference. This is faster than a search for them.
    pub fn may_be_in(text: &[u8]) -> bool {
        memchr::memmem::find(text, BLOB_SCHEME.as_bytes()).is_some()
    }

    /// Appends every blob reference in `text` to `found`. A reference inside of a longer word
    /// counts, too, because keeping an unused blob does less harm than deleting a blob that is in
    /// use.
    pub fn find_in(mut text: &[u8], found: &mut Vec<Self>) {
        while text.len() >= BLOB_SCHEME.len() + DIGEST_DIGITS {
            let Some(colon) = memchr::memchr(b':', text) else { return };
            let digits = colon + 1;
            if let Some(start) = digits.checked_sub(BLOB_SCHEME.len())
                && let Some(reference) = text.get(start..digits + DIGEST_DIGITS)
                && let Ok(reference) = std::str::from_utf8(reference)
                && let Some(blob) = Self::parse(reference)
            {
                found.push(blob);
            }
            text = &text[digits..];
        }
    }
}

impl std::fmt::Display for BlobRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{BLOB_SCHEME}{}", self.0)
    }
}

impl TryFrom<String> for BlobRef {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a blob reference"))
    }
}

impl From<BlobRef> for String {
    fn from(blob: BlobRef) -> Self {
        blob.to_string()
    }
}
