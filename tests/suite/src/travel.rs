//! The travel application as its page uses it: sessions, a streamed conversation, the resulting
//! page. Every service is a stand-in.

pub mod config;
mod talk;

use serde_json::{Value, json};
use wattle_kit::configuration::Configuration;
use wattle_kit::standin::{Entry, Pattern};

pub use talk::{Stream, Talk};

use crate::answer::Answer;
use crate::guests;
use crate::place::Place;
use crate::server::{Setup, TestServer};

/// Makes and lists sessions.
pub const SESSIONS: &str = "/api/sessions";

/// Sends a message and streams the answer.
pub const CHAT: &str = "/api/chat";

/// Where the model that talks is asked.
pub const CHAT_MODEL: &str = "/v1/chat/completions";

/// Where Google's models are asked, for texts and for pictures.
pub const GOOGLE: &str = "/v1beta/models/*";

/// Where videos are crawled.
pub const APIFY: &str = "/v2/acts/streamers~youtube-scraper/run-sync-get-dataset-items";

/// Where places are looked up.
pub const NOMINATIM: &str = "/search";

/// Where photographs are searched.
pub const UNSPLASH: &str = "/search/photos";

/// The models that pictures come from first.
pub const IMAGEN: &str = "/v1beta/models/imagen-*";

/// A video with everything, of which one place is found only with its city and something stands
/// behind the part of the subtitles that is read.
pub const TOKYO: &str = "https://www.youtube.com/watch?v=dQw4w9WgXcQ";

/// A video without `thumbnailUrl`.
pub const KYOTO: &str = "https://www.youtube.com/watch?v=kyotoTempl1";

/// A video that says no location; one of its places is on no map and in no photograph.
pub const OSAKA: &str = "https://www.youtube.com/watch?v=osakaNight1";

/// A video without subtitles.
pub const LISBON: &str = "https://www.youtube.com/watch?v=lisbonTram1";

/// A video without a place to see.
pub const KITCHEN: &str = "https://www.youtube.com/watch?v=homeKitchen";

/// A video whose places are on no map.
pub const NOWHERE: &str = "https://www.youtube.com/watch?v=nowhereIsle";

/// A video that the crawler finds nothing of.
pub const MISSING: &str = "https://www.youtube.com/watch?v=emptyVideo1";

/// A video that the crawler reports an error about.
pub const BROKEN: &str = "https://www.youtube.com/watch?v=brokenVid01";

/// Secrets, each in a file of the place, which must be seen nowhere else.
pub const SECRETS: [(&str, &str); 2] =
    [("apify-token", "apify-token-of-the-suite"), ("unsplash-key", "unsplash-key-of-the-suite")];

/// Puts the plugin and the secrets where [`config::configuration`] expects them.
pub fn put(place: &Place) {
    place.write("plugins/std/std.wasm", guests::bytes("wattle-std"));
    for (file, secret) in SECRETS {
        place.write(file, format!("{secret}\n"));
    }
}

impl Setup {
    /// A server with the travel application on a SQLite file.
    pub async fn travel() -> Self {
        Self::travel_with(|_| ()).await
    }

    /// A server with the travel application on any database.
    pub async fn travel_on(sql_url: &str) -> Self {
        Self::travel_with(|config| config.replace("sql.travel.url", sql_url)).await
    }

    /// The same with a changed configuration.
    pub async fn travel_with(change: impl FnOnce(&mut Configuration)) -> Self {
        let setup = Self::bare().await;
        put(&setup.place);
        let mut config = config::configuration(&setup.standin);
        change(&mut config);
        setup.with(&config.to_string())
    }
}

/// The travel application of a server.
#[derive(Clone, Copy)]
pub struct Travel<'a> {
    server: &'a TestServer,
    tenant: Option<&'static str>,
}

impl TestServer {
    /// The travel application.
    pub fn travel(&self) -> Travel<'_> {
        Travel { server: self, tenant: None }
    }

    /// The same as a tenant sees it.
    pub fn travel_of(&self, tenant: &'static str) -> Travel<'_> {
        Travel { server: self, tenant: Some(tenant) }
    }

    /// Requests that cost money: those to models, for pictures and to Apify.
    pub fn paid(&self) -> Vec<Entry> {
        let paid = [CHAT_MODEL, GOOGLE, APIFY];
        paid.iter().flat_map(|path| self.requests_on(path)).collect()
    }

    /// Requests to a path of the stand-in, or to paths that begin so if it ends with `*`.
    pub fn requests_on(&self, path: &str) -> Vec<Entry> {
        let fits = |entry: &Entry| match path.strip_suffix('*') {
            Some(start) => entry.path.starts_with(start),
            None => entry.path == path,
        };
        let mut entries = self.standin().requests();
        entries.retain(fits);
        entries
    }

    /// Requests to models that work on a task, such as `json_compilation_strict`.
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

    /// A request that the test may still change.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.server.request_of(self.tenant, method, path)
    }

    /// Makes a session and returns its id.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn create(&self) -> String {
        let made = self.send("POST", SESSIONS, Some(&json!({}))).await.expect(201);
        made["id"].as_str().expect("an id").to_owned()
    }

    /// The document of a session, with its messages, steps and state.
    pub async fn session(&self, session: &str) -> Value {
        self.send("GET", &format!("{SESSIONS}/{session}"), None).await.expect(200)
    }

    /// The messages of a session, as the chat page has them.
    pub async fn messages(&self, session: &str) -> Vec<Value> {
        self.session(session).await["messages"].as_array().cloned().unwrap_or_default()
    }

    /// What `useChat` sends: all messages so far, and a new one of the user.
    pub async fn message(&self, session: &str, text: &str) -> Value {
        let mut messages = self.messages(session).await;
        let id = format!("user-{}", messages.len() + 1);
        let parts = json!([{"type": "text", "text": text}]);
        messages.push(json!({"id": id, "role": "user", "parts": parts}));
        json!({"sessionId": session, "id": session, "trigger": "submit-message", "messages": messages})
    }

    /// Says something and gives the answer as it comes.
    pub async fn stream(&self, session: &str, text: &str) -> Stream {
        let body = self.message(session, text).await;
        Stream::open(self.request("POST", CHAT).json(&body)).await
    }

    /// Says something and waits for the whole answer.
    pub async fn chat(&self, session: &str, text: &str) -> Talk {
        self.stream(session, text).await.rest().await
    }

    /// Connects to the answer that is being given; `None` if there is none.
    pub async fn reconnect(&self, session: &str) -> Option<Stream> {
        Stream::try_open(self.request("GET", &format!("{CHAT}/{session}/stream"))).await
    }

    /// Stops the answer that is being given.
    pub async fn cancel(&self, session: &str) -> Answer {
        let path = format!("{SESSIONS}/{session}/cancel");
        self.send("POST", &path, Some(&json!({}))).await
    }

    /// The page of a session.
    pub async fn guide(&self, session: &str) -> Answer {
        self.send("GET", &format!("/api/guide/{session}"), None).await
    }

    /// Makes a whole guide of a video in a new session; gives its id and what was said.
    pub async fn make(&self, url: &str) -> (String, Talk) {
        let session = self.create().await;
        let said = self.chat(&session, url).await;
        (session, said)
    }
}

/// Model requests that work on a task.
pub fn working_on(task: &str) -> Pattern {
    Pattern { body_contains: Some(mark(task).to_owned()), ..Pattern::path(GOOGLE) }
}

/// Whether a request to a model works on a task, whatever became of it.
pub fn is_about(entry: &Entry, task: &str) -> bool {
    let says = |body: &Value| body.to_string().contains(mark(task));
    entry.path.starts_with("/v1beta/models/") && entry.body.as_ref().is_some_and(says)
}

/// What the requests of a task have in their bodies and no others: a field of the wanted answer;
/// for a page, which is a text, the length that only it may have.
fn mark(task: &str) -> &'static str {
    match task {
        "json_compilation_strict" => "\"spot_blocks\":",
        "spot_query_normalization" => "\"spot_queries\":",
        "handbook_image_query_planning" => "\"alt\":",
        "handbook_html_generation" => "\"maxOutputTokens\":16384",
        other => panic!("no task has the name `{other}`"),
    }
}
