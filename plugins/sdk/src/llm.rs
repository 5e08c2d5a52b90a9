//! Language models. A plugin calls a model through a route. The operator configures the provider,
//! model and key of the route. Completions are journaled, so a node that is executed again does not
//! pay for them again. A [`Task`] checks completions, and makes further requests after a refusal.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::FakeHost;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Verdict {
//!     kind: String,
//! }
//!
//! let host = FakeHost::new().llm(|request| {
//!     assert_eq!(request.route, "chat");
//!     Ok(Completion::of_json(json!({"kind": "operation"})))
//! });
//! host.run(|| {
//!     let completion = llm::Request::route("chat")
//!         .system("Say what kind of sentence this is.")
//!         .user("I bought 100 shares.")
//!         .schema::<Verdict>("verdict")
//!         .temperature(0.0)
//!         .complete()?;
//!     let verdict: Verdict = completion.structured()?;
//!     assert_eq!(verdict.kind, "operation");
//!     Ok::<_, Failure>(())
//! })?;
//! # Ok::<_, Failure>(())
//! ```

pub(crate) mod completion;
pub(crate) mod history;
mod image;
mod request;
mod route;
mod stream;
mod task;

pub use self::completion::{Attempt, Completion, FinishReason, Usage};
pub use self::history::History;
pub use self::image::{GeneratedImage, ImageRequest, generate_images};
pub use self::request::{Request, ResponseSchema, ToolChoice, ToolDefinition, complete_all};
pub use self::route::{RouteInfo, route};
pub use self::stream::{CompletionStream, StreamEvent, stream};
pub use self::task::{Checked, TASK_FAILED, Task};
