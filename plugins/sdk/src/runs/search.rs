//! Lists of threads.

use serde_json::Value;

use crate::failure::Failure;
use crate::json::Extra;
use crate::runs;

/// Default maximum number of threads in a page.
const DEFAULT_LIMIT: u32 = 50;

/// A search for threads. All conditions must hold.
///
/// ```
/// use serde_json::json;
/// use wattle_plugin::runs::{self, Thread, ThreadSearch};
/// use wattle_plugin::testing::FakeHost;
///
/// let thread = |id: &str| Thread::new(id, "notes", "idle", json!({}));
/// let host = FakeHost::new().thread(thread("a")).thread(thread("b"));
/// host.run(|| {
///     runs::update_thread("b", json!({"customer": {"id": 7}}))?;
///     let search = ThreadSearch::all().graph("notes").metadata(json!({"customer": {"id": 7}}));
///     let page = search.run()?;
///     assert_eq!(page.threads[0].thread_id, "b");
///     assert_eq!(page.next, None);
///
///     let first = ThreadSearch::all().limit(1).run()?;
///     let next = first.next.ok_or_else(|| wattle_plugin::Failure::internal("no page"))?;
///     assert_eq!(ThreadSearch::all().after(next).run()?.threads[0].thread_id, "a");
///     Ok::<_, wattle_plugin::Failure>(())
/// })?;
/// # Ok::<_, wattle_plugin::Failure>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadSearch {
    /// Only threads of this graph.
    pub graph: Option<String>,
    /// Only threads that contain this text in their id, newest run, app, graph, failure or in a
    /// text of their metadata. Letters match in either case. At most 512 bytes.
    pub text: Option<String>,
    /// Only threads whose metadata contains the fields of this JSON object. Nested objects may have
    /// additional fields.
    pub metadata: Option<Value>,
    /// The [`ThreadPage::next`] of the page before.
    pub after: Option<String>,
    /// Maximum number of threads in the page. A number outside of 1 to 500 counts as the nearest
    /// one within.
    pub limit: u32,
    /// Extension fields.
    pub extra: Extra,
}

impl ThreadSearch {
    /// Creates a search for the first 50 threads, newest update first.
    pub fn all() -> Self {
        Self { limit: DEFAULT_LIMIT, ..Self::default() }
    }

    /// Searches only threads of a graph.
    pub fn graph(mut self, graph: impl Into<String>) -> Self {
        self.graph = Some(graph.into());
        self
    }

    /// Searches only threads with a text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Searches only threads whose metadata contains the fields of an object.
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.metadata = Some(metadata.into());
        self
    }

    /// Continues after another page, with its [`ThreadPage::next`].
    pub fn after(mut self, after: impl Into<String>) -> Self {
        self.after = Some(after.into());
        self
    }

    /// Sets the maximum number of threads in the page.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the search.
    ///
    /// # Errors
    ///
    /// `invalid` if the text is too long, if the metadata is not an object, or if no page has the
    /// position; `unsupported` in a node.
    pub fn run(self) -> Result<ThreadPage, Failure> {
        runs::threads(self)
    }
}

/// A thread in a list: a [`Thread`](crate::runs::Thread) without its state.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSummary {
    /// Id of the thread.
    pub thread_id: String,
    /// Name of the graph.
    pub graph: String,
    /// `idle`, `running`, `interrupted` or `error`.
    pub status: String,
    /// Id of the newest run.
    pub run_id: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub created_ms: i64,
    /// Time of the last change, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Metadata of the thread.
    pub metadata: Value,
    /// Extension fields.
    pub extra: Extra,
}

/// A page of a list of threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadPage {
    /// The threads, newest update first. A page may be short or empty although another one follows.
    pub threads: Vec<ThreadSummary>,
    /// Cursor after the page; `None` at the end of the list.
    pub next: Option<String>,
}
