//! The travel application through the endpoints of its page: sessions, a streamed conversation and
//! the resulting page. Every service is a stand-in.

pub mod config;
mod talk;

use serde_json::{Value, json};
use wattle_kit::configuration::Configuration;
use wattle_kit::standin::{Entry, Pattern};

pub use talk::{Stream, Talk};

use crate::answer::Answer;
use crate::guests;
use crate::scene::Scene;
use crate::server::{Setup, TestServer};
use crate::workspace::{self, Workspace};

/// The path that creates and lists sessions.
pub const SESSIONS: &str = "/api/sessions";

/// The path that sends a message and streams the reply.
pub const CHAT: &str = "/api/chat";

/// The path of requests to the chat model.
pub const CHAT_MODEL: &str = "/v1/chat/completions";

/// The path pattern of requests to Google's models, for texts and images.
pub const GOOGLE: &str = "/v1beta/models/*";

/// The path of video requests.
pub const APIFY: &str = "/v2/acts/streamers~youtube-scraper/run-sync-get-dataset-items";

/// The path of place lookups.
pub const NOMINATIM: &str = "/search";

/// The path of photo searches.
pub const UNSPLASH: &str = "/search/photos";

/// The path pattern of requests to the image models that are called first.
pub const IMAGEN: &str = "/v1beta/models/imagen-*";

/// A video with all data. One of its places is found only with its city, and its subtitles are
/// longer than the part that is read.
pub const TOKYO: &str = "https://www.youtube.com/watch?v=dQw4w9WgXcQ";

/// A video without `thumbnailUrl`.
pub const KYOTO: &str = "https://www.youtube.com/watch?v=kyotoTempl1";

/// A video without a location. One of its places is on no map and in no photo.
pub const OSAKA: &str = "https://www.youtube.com/watch?v=osakaNight1";

/// A video without subtitles.
pub const LISBON: &str = "https://www.youtube.com/watch?v=lisbonTram1";

/// A video without a place to see.
pub const KITCHEN: &str = "https://www.youtube.com/watch?v=homeKitchen";

/// A video whose places are on no map.
pub const NOWHERE: &str = "https://www.youtube.com/watch?v=nowhereIsle";

/// A video for which the crawler returns no items.
pub const MISSING: &str = "https://www.youtube.com/watch?v=emptyVideo1";

/// A video for which the crawler returns an error.
pub const BROKEN: &str = "https://www.youtube.com/watch?v=brokenVid01";

/// Secrets, each in a file of the test folder, which must appear nowhere else.
pub const SECRETS: [(&str, &str); 2] =
    [("apify-token", "apify-token-of-the-suite"), ("unsplash-key", "unsplash-key-of-the-suite")];

/// Writes the plugin and the secrets to the files that [`config::configuration`] names.
pub fn put(workspace: &Workspace) {
    workspace.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
    for (file, secret) in SECRETS {
        workspace.write(file, format!("{secret}\n"));
    }
}

/// Returns a folder for the real binary, whose runs continue while a page reconnects to a server that
/// was started again.
pub async fn scene() -> Scene {
    Scene::new(|workspace, standin| {
        put(workspace);
        let mut config = config::configuration(standin);
        config.replace("apps.travel.settings.disconnect_grace_ms", 60_000);
        [workspace::base_toml(standin), config.to_string()].concat()
    })
    .await
}

impl Setup {
    /// Creates a server with the travel application on a SQLite file.
    pub async fn travel() -> Self {
        Self::travel_with(|_| ()).await
    }

    /// Creates a server with the travel application on any database.
    pub async fn travel_on(sql_url: &str) -> Self {
        Self::travel_with(|config| config.replace("sql.travel.url", sql_url)).await
    }

    /// Creates a server with the travel application and a changed configuration.
    pub async fn travel_with(change: impl FnOnce(&mut Configuration)) -> Self {
        let setup = Self::bare().await;
        put(&setup.workspace);
        let mut config = config::configuration(&setup.standin);
        change(&mut config);
        setup.with(&config.to_string())
    }
}

/// A client of the travel application, for one tenant or for a host without tenants.
#[derive(Clone, Copy)]
pub struct Travel<'a> {
    server: &'a TestServer,
    tenant: Option<&'static str>,
}

impl TestServer {
    /// Returns a client of the travel application.
    pub fn travel(&self) -> Travel<'_> {
        Travel { server: self, tenant: None }
    }

    /// Returns a client of the travel application for a tenant.
    pub fn travel_of(&self, tenant: &'static str) -> Travel<'_> {
        Travel { server: self, tenant: Some(tenant) }
    }

    /// Returns the requests that cost money: to models for texts and images, and to Apify.
    pub fn paid(&self) -> Vec<Entry> {
        let paid = [CHAT_MODEL, GOOGLE, APIFY];
        paid.iter().flat_map(|path| self.requests_on(path)).collect()
    }

    /// Returns the requests to a path of the stand-in, or to all paths with a prefix if `path` ends
    /// with `*`.
    pub fn requests_on(&self, path: &str) -> Vec<Entry> {
        let fits = |entry: &Entry| match path.strip_suffix('*') {
            Some(start) => entry.path.starts_with(start),
            None => entry.path == path,
        };
        let mut entries = self.standin().requests();
        entries.retain(fits);
        entries
    }

    /// Returns the requests to models for a task, such as `json_compilation_strict`.
    pub fn requests_for(&self, task: &str) -> Vec<Entry> {
        let mut entries = self.requests_on(GOOGLE);
        entries.retain(|entry| is_about(entry, task));
        entries
    }
}

impl Travel<'_> {
    /// Sends a request.
    pub async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request = self.request(method, path);
        Answer::of(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// Returns a request that the test can still change.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.server.request_of(self.tenant, method, path)
    }

    /// Creates a session and returns its id.
    ///
    /// # Panics
    ///
    /// If the response has no id.
    pub async fn create(&self) -> String {
        let made = self.send("POST", SESSIONS, Some(&json!({}))).await.expect(201);
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Returns a session, with its messages, steps and state.
    pub async fn session(&self, session: &str) -> Value {
        self.send("GET", &format!("{SESSIONS}/{session}"), None).await.expect(200)
    }

    /// Returns the messages of a session, as the chat page has them.
    pub async fn messages(&self, session: &str) -> Vec<Value> {
        self.session(session).await["messages"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the request of `useChat`: all messages so far, and a new user message.
    pub async fn message(&self, session: &str, text: &str) -> Value {
        let mut messages = self.messages(session).await;
        let id = format!("user-{}", messages.len() + 1);
        let parts = json!([{"type": "text", "text": text}]);
        messages.push(json!({"id": id, "role": "user", "parts": parts}));
        json!({"sessionId": session, "id": session, "trigger": "submit-message", "messages": messages})
    }

    /// Sends a message and returns the stream of the reply.
    pub async fn stream(&self, session: &str, text: &str) -> Stream {
        let body = self.message(session, text).await;
        Stream::open(self.request("POST", CHAT).json(&body)).await
    }

    /// Sends a message and waits for the whole reply.
    pub async fn chat(&self, session: &str, text: &str) -> Talk {
        self.stream(session, text).await.rest().await
    }

    /// Connects to the current reply, or returns `None` if there is none.
    pub async fn reconnect(&self, session: &str) -> Option<Stream> {
        Stream::try_open(self.request("GET", &format!("{CHAT}/{session}/stream"))).await
    }

    /// Cancels the current reply.
    pub async fn cancel(&self, session: &str) -> Answer {
        let path = format!("{SESSIONS}/{session}/cancel");
        self.send("POST", &path, Some(&json!({}))).await
    }

    /// Returns the page of a session.
    pub async fn guide(&self, session: &str) -> Answer {
        self.send("GET", &format!("/api/guide/{session}"), None).await
    }

    /// Creates a guide of a video in a new session. Returns the session's id and the reply.
    pub async fn make(&self, url: &str) -> (String, Talk) {
        let session = self.create().await;
        let said = self.chat(&session, url).await;
        (session, said)
    }
}

/// Matches model requests for a task.
pub fn working_on(task: &str) -> Pattern {
    Pattern { body_contains: Some(mark(task).to_owned()), ..Pattern::path(GOOGLE) }
}

/// Returns whether a request to a model is for a task, whatever its response.
pub fn is_about(entry: &Entry, task: &str) -> bool {
    let says = |body: &Value| body.to_string().contains(mark(task));
    entry.path.starts_with("/v1beta/models/") && entry.body.as_ref().is_some_and(says)
}

/// Returns a text that only the requests of a task contain: a field of the response schema, or for
/// the page, which is a text, its maximum length.
fn mark(task: &str) -> &'static str {
    match task {
        "json_compilation_strict" => "\"spot_blocks\":",
        "spot_query_normalization" => "\"spot_queries\":",
        "handbook_image_query_planning" => "\"alt\":",
        "handbook_html_generation" => "\"maxOutputTokens\":16384",
        other => panic!("no task has the name `{other}`"),
    }
}
