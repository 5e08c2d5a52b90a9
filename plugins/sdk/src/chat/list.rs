//! Lists of conversations, their titles, and their deletion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Chat, TITLE};
use crate::failure::{Failure, code};
use crate::runs::{self, ThreadPage, ThreadSearch, ThreadSummary};
use crate::web::{Request, refuse, status};

/// Number of conversations in a page if the request has no limit.
const DEFAULT_LIMIT: u32 = 50;

/// Maximum number of conversations in a page.
const MAX_LIMIT: u32 = 200;

/// Maximum number of characters of a title.
const TITLE_CHARS: usize = 200;

/// A page of the list of conversations.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ThreadList {
    /// The conversations, newest update first.
    threads: Vec<ThreadEntry>,
    /// Value of `after` for the next page; null at the end of the list. A page may be short or
    /// empty although another one follows.
    next: Option<String>,
}

/// A conversation in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ThreadEntry {
    thread_id: String,
    /// Null for a conversation without a title.
    title: Option<String>,
    /// `running` during a run.
    status: String,
    /// Time of creation, in milliseconds since 1970.
    created_ms: i64,
    /// Time of the last update, in milliseconds since 1970.
    updated_ms: i64,
}

/// A new title of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TitleRequest {
    title: String,
}

impl From<ThreadPage> for ThreadList {
    fn from(page: ThreadPage) -> Self {
        Self { threads: page.threads.into_iter().map(Into::into).collect(), next: page.next }
    }
}

impl From<ThreadSummary> for ThreadEntry {
    fn from(thread: ThreadSummary) -> Self {
        let title = thread.metadata.get(TITLE).and_then(Value::as_str);
        Self {
            title: title.map(ToOwned::to_owned),
            thread_id: thread.thread_id,
            status: thread.status,
            created_ms: thread.created_ms,
            updated_ms: thread.updated_ms,
        }
    }
}

/// Methods for lists of conversations.
impl Chat {
    /// Lists the conversations of the tenant of a request, newest update first. The query
    /// parameters of the request are `limit`, which is 50 by default and at most 200, `after`,
    /// which is `next` of the page before, and `text`, which selects conversations by their titles
    /// and ids.
    ///
    /// ```
    /// use wattle_plugin::chat::{Chat, ThreadList, TitleRequest};
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::runs::Thread;
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// const CHAT: Chat = Chat::graph("notes").title_chars(80);
    ///
    /// /// Lists the conversations.
    /// #[handler(GET, "/api/threads",
    ///     query(limit: Option<u32>, after: Option<String>, text: Option<String>),
    ///     returns = ThreadList)]
    /// fn list(request: &Request) -> Result<Response, Failure> {
    ///     Response::json(200, &CHAT.list(request)?)
    /// }
    ///
    /// /// Renames a conversation.
    /// #[handler(PATCH, "/api/threads/{id}", body = TitleRequest, returns(204))]
    /// fn rename(request: &Request) -> Result<Response, Failure> {
    ///     CHAT.rename(&request.param::<String>("id")?, request)?;
    ///     Ok(Response::empty(204))
    /// }
    ///
    /// /// Deletes a conversation.
    /// #[handler(DELETE, "/api/threads/{id}", returns(204))]
    /// fn delete(request: &Request) -> Result<Response, Failure> {
    ///     CHAT.delete(&request.param::<String>("id")?)?;
    ///     Ok(Response::empty(204))
    /// }
    ///
    /// let host = FakeHost::new().thread(Thread::new("t", "notes", "idle", json!({})));
    /// let title = Request::new("PATCH", "/api/threads/t").with_param("id", "t");
    /// host.run(|| rename(&title.with_body(r#"{"title": "Tea"}"#)))?;
    /// let shown = host.run(|| list(&Request::new("GET", "/api/threads")))?.json_body()?;
    /// assert_eq!(shown["threads"][0]["title"], "Tea");
    /// # Ok::<_, Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A failure with status 400 for a parameter that is not valid.
    pub fn list(&self, request: &Request) -> Result<ThreadList, Failure> {
        let invalid = || refuse(status::BAD_REQUEST, self.texts.list);
        let limit = request.number::<u32>("limit").map_err(|_| invalid())?;
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let mut search = ThreadSearch::all().graph(self.graph).limit(limit);
        search.after = request.query("after").map(ToOwned::to_owned);
        search.text = request.query("text").map(ToOwned::to_owned);
        let page = search.run().map_err(|failure| match failure.code.as_str() {
            code::INVALID => invalid(),
            _ => failure,
        })?;
        Ok(page.into())
    }

    /// Sets the title of a conversation to that of a [`TitleRequest`].
    ///
    /// # Errors
    ///
    /// A failure with status 400 for a title without 1 to 200 characters; `not-found` with status
    /// 404 if the graph has no such thread; a failure with status 409 if the thread is in use.
    pub fn rename(&self, thread_id: &str, request: &Request) -> Result<(), Failure> {
        let invalid = || refuse(status::BAD_REQUEST, self.texts.title);
        let body: TitleRequest = request.json().map_err(|_| invalid())?;
        let title = body.title.trim();
        if title.is_empty() || title.chars().count() > TITLE_CHARS {
            return Err(invalid());
        }
        let thread = self.find(thread_id)?;
        let updated = runs::update_thread(&thread.thread_id, json!({ TITLE: title }));
        updated.map_err(|failure| self.refused(failure))
    }

    /// Deletes a conversation. Cancels its active run first.
    ///
    /// # Errors
    ///
    /// `not-found` with status 404 if the graph has no such thread; a failure with status 409 if
    /// the thread is in use.
    pub fn delete(&self, thread_id: &str) -> Result<(), Failure> {
        let thread = self.find(thread_id)?;
        if let Some(run) = thread.active_run() {
            runs::cancel_and_wait(&run)?;
        }
        runs::delete_thread_if_any(&thread.thread_id).map_err(|failure| self.refused(failure))
    }
}
