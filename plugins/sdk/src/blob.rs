//! Blobs: content-addressed bytes. State, messages and the journal contain references to blobs
//! instead of bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::host;

/// A reference to a blob.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct BlobRef(pub String);

impl BlobRef {
    /// Returns the reference as text: `blob:` and 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Metadata of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Reference to the blob.
    pub blob: BlobRef,
    /// Size in bytes.
    pub size: u64,
    /// Media type, such as `image/png`.
    pub media_type: String,
}

/// A decoded data URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// The decoded bytes.
    pub bytes: Vec<u8>,
}

/// Stores bytes as a blob. Equal bytes have the same reference.
///
/// ```
/// use wattle_plugin::testing::FakeHost;
/// use wattle_plugin::{Failure, blob};
///
/// FakeHost::new().run(|| {
///     let note = blob::put(b"hello", "text/plain")?;
///     assert_eq!(blob::get(&note)?, b"hello");
///     assert_eq!(blob::get_range(&note, 1, 3)?, b"ell");
///     assert_eq!(blob::stat(&note)?.size, 5);
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn put(bytes: &[u8], media_type: &str) -> Result<BlobRef, Failure> {
    host::blob::put(bytes, media_type)
}

/// Reads a whole blob of at most 64 MiB. Read a larger blob in ranges, with [`get_range`].
pub fn get(blob: &BlobRef) -> Result<Vec<u8>, Failure> {
    host::blob::get(blob, 0, None)
}

/// Reads up to `length` bytes of a blob, beginning at `offset`. Returns fewer bytes if the blob
/// ends earlier.
pub fn get_range(blob: &BlobRef, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
    host::blob::get(blob, offset, Some(length))
}

/// Returns the metadata of a blob.
pub fn stat(blob: &BlobRef) -> Result<Info, Failure> {
    host::blob::stat(blob)
}

/// Returns a short path under which the host serves a blob over HTTP for the tenant of the call. A
/// page can use the path as the URL of an image.
///
/// ```
/// use wattle_plugin::testing::FakeHost;
/// use wattle_plugin::{Failure, blob};
///
/// FakeHost::new().run(|| {
///     let picture = blob::put(b"png", "image/png")?;
///     assert!(blob::link(&picture)?.starts_with("/blobs/"));
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn link(blob: &BlobRef) -> Result<String, Failure> {
    host::blob::link(blob)
}

/// Decodes a data URL of the form `data:<media type>;base64,<data>`, the format in which browsers
/// send files within JSON. The default media type is `text/plain`.
///
/// # Errors
///
/// `invalid` if the string does not have this form.
///
/// ```
/// let data = wattle_plugin::blob::parse_data_url("data:text/plain;base64,aGk=")?;
/// assert_eq!(data.bytes, b"hi");
/// # Ok::<_, wattle_plugin::Failure>(())
/// ```
pub fn parse_data_url(url: &str) -> Result<Data, Failure> {
    let wrong = |reason: &str| {
        Failure::invalid(format!(
            "read a data URL: {reason}; expected `data:<media type>;base64,<data>`"
        ))
    };
    let rest = url.strip_prefix("data:").ok_or_else(|| wrong("it does not start with `data:`"))?;
    let (kind, text) = rest.split_once(',').ok_or_else(|| wrong("there is no comma"))?;
    let kind = kind.strip_suffix(";base64").ok_or_else(|| wrong("it is not base64"))?;
    let media_type = kind.split(';').next().filter(|kind| !kind.is_empty());
    let bytes = STANDARD.decode(text).map_err(|error| wrong(&error.to_string()))?;
    Ok(Data { media_type: media_type.unwrap_or("text/plain").to_owned(), bytes })
}

#[cfg(test)]
mod tests {
    use super::parse_data_url;

    #[test]
    fn invalid_data_urls_are_rejected() {
        for url in ["http://a", "data:image/png", "data:image/png,abc", "data:a;base64,*"] {
            assert!(parse_data_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn parameters_and_a_missing_type_are_accepted() {
        let data = parse_data_url("data:text/html;charset=utf-8;base64,aGk=").unwrap();
        assert_eq!(data.media_type, "text/html");
        assert_eq!(parse_data_url("data:;base64,aGk=").unwrap().media_type, "text/plain");
    }
}
