//! The form of a response: one JSON document, or server-sent events.

use crate::provider::sse::SseParser;

/// Maximum bytes of one response. A stream takes hundreds of bytes for a token.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Maximum bytes of a response that is one document. All of it is in memory until it has arrived, so
/// it is below the part of one caller in the memory of responses of services.
pub(super) const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// The byte order mark that some gateways send first.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The form of a response.
pub(super) enum BodyFormat {
    /// Unknown, because only a byte order mark or white space has arrived. DeepSeek sends white
    /// space while it is busy.
    Unknown,
    /// One JSON document.
    Document(Vec<u8>),
    /// Server-sent events.
    Events(SseParser),
}

impl BodyFormat {
    /// Returns the maximum bytes of the response.
    pub(super) fn max_bytes(&self) -> usize {
        match self {
            Self::Document(_) => MAX_DOCUMENT_BYTES,
            Self::Unknown | Self::Events(_) => MAX_RESPONSE_BYTES,
        }
    }

    /// Returns the bytes that are parsed when the response ends.
    pub(super) fn pending_bytes(&self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::Document(document) => document.len(),
            Self::Events(events) => events.pending_bytes(),
        }
    }

    /// Adds a chunk. Returns the data of the events that are complete now.
    pub(super) fn feed(&mut self, mut chunk: &[u8]) -> Vec<String> {
        if let Self::Unknown = self {
            chunk = trim_bom(chunk);
            match chunk.first() {
                None => return Vec::new(),
                Some(b'{' | b'[') => *self = Self::Document(Vec::new()),
                Some(_) => *self = Self::Events(SseParser::default()),
            }
        }
        match self {
            Self::Document(document) => {
                document.extend_from_slice(chunk);
                Vec::new()
            }
            Self::Events(events) => events.feed(chunk),
            Self::Unknown => Vec::new(),
        }
    }
}

/// Returns the bytes without leading white space and byte order mark. Each byte of the mark may
/// come in a separate chunk.
fn trim_bom(bytes: &[u8]) -> &[u8] {
    let is_lead = |byte: u8| byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte);
    let start = bytes.iter().position(|byte| !is_lead(*byte));
    &bytes[start.unwrap_or(bytes.len())..]
}
