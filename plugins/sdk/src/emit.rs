//! Events of the plugin's own in the event log, and with it in every stream.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::{Failure, emit, testing::FakeHost};
//!
//! let host = FakeHost::new();
//! host.run(|| {
//!     emit::progress("reading page 3 of 4", Some(0.75))?;
//!     emit::custom("page-read", json!({"page": 3}))
//! })?;
//! assert_eq!(host.emitted()[0], ("page-read".to_owned(), json!({"page": 3})));
//! # Ok::<_, Failure>(())
//! ```

use serde_json::Value;

use crate::failure::Failure;
use crate::host;

/// Appends an event. Names are 1 to 64 of `[a-zA-Z0-9_.-]`.
pub fn custom(name: &str, data: impl Into<Value>) -> Result<(), Failure> {
    host::emit::custom(name, data.into())
}

/// Says how far the node is: a sentence, and a share from 0 to 1 if known. Also tells the host
/// that the node is alive.
pub fn progress(message: &str, fraction: Option<f64>) -> Result<(), Failure> {
    host::emit::progress(message, fraction)
}
