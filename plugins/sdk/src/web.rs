//! HTTP endpoints of an app: requests and responses.
//!
//! [`respond()`] reports failures in the form of the app; without it, a failure with a status is an
//! `application/problem+json` document. [`Request::page`] is for lists, and [`Request::has_tag`]
//! for entity tags.
//!
//! Calls of a web handler are not journaled. Work that must survive a crash belongs into a run that
//! the handler starts.
//!
//! ```
//! use wattle_plugin::prelude::*;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Item {
//!     name: String,
//! }
//!
//! #[handler(POST, "/api/items/{id}")]
//! fn rename(request: &Request) -> Result<Response, Failure> {
//!     let item: Item = request.json()?;
//!     let id: u64 = request.param("id")?;
//!     Response::json(200, &json!({"id": id, "name": item.name}))
//! }
//!
//! wattle_plugin::export! { handlers: [rename] }
//! # fn main() -> Result<(), Failure> {
//! let request = Request::new("POST", "/api/items/7")
//!     .with_param("id", "7")
//!     .with_body(br#"{"name": "lamp"}"#);
//! let response = rename(&request)?;
//! assert_eq!(response.status, 200);
//! assert_eq!(response.json_body()?["id"], 7);
//! # Ok(())
//! # }
//! ```

mod page;
mod request;
mod respond;
mod response;
pub mod status;

pub use self::page::{PAGE_BYTES, PageQuery};
pub use self::request::Request;
pub use self::respond::{ErrorDocument, ErrorForm, refuse, respond};
#[cfg(target_arch = "wasm32")]
pub(crate) use self::response::settle;
pub use self::response::{Body, HandOff, Response, StreamFormat};
