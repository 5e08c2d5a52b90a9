//! The asset application through the endpoints of its page: invoke, review and resume; and the rows
//! of its tables.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use wattle_kit::picture::png_with_text;
use wattle_kit::standin::Entry;

use crate::answer::Answer;
use crate::server::{Setup, TestServer};
use crate::workspace;

/// The path that starts a run.
pub const INVOKE: &str = "/api/ai/asset-graph/invoke";

/// The path that resumes a run with confirmed rows.
pub const RESUME: &str = "/api/ai/asset-graph/resume";

/// The path that starts a run and streams the progress of every node.
pub const STREAM: &str = "/api/ai/asset-graph/stream";

/// Environment variables that the shipped configuration names, with values that the stand-in
/// accepts.
pub const VARIABLES: [(&str, &str); 2] = [
    ("OPENAI_API_KEY", "openai-key-of-the-suite"),
    ("MASSIVE_API_KEY", "massive-key-of-the-suite"),
];

/// The path of model requests at the stand-in.
const MODEL_PATH: &str = "/v1/chat/completions";

/// The path of security searches at the stand-in.
pub const MASSIVE_PATH: &str = "/v3/reference/tickers";

/// The review that an interrupted run shows to a person.
#[derive(Clone, Debug)]
pub struct Review {
    /// The id of the thread to resume.
    pub thread: String,
    /// The whole review document.
    pub payload: Value,
}

impl Review {
    /// Returns the rows of the review.
    pub fn rows(&self) -> Value {
        self.payload["rows"].clone()
    }
}

/// Returns a picture that shows `text`, as the data URL that a browser sends.
pub fn picture(text: &str, min_bytes: usize) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(png_with_text(text, min_bytes)))
}

/// Returns the answer of a person who confirms rows for a portfolio.
pub fn confirmed(rows: &Value, portfolio: i64) -> Value {
    json!({ "rows": rows, "riskCategory": "aggressive", "portfolioId": portfolio })
}

/// Creates a server with the configuration that the application ships, mounted at `/`.
pub async fn example() -> Setup {
    let setup = Setup::without_models().await;
    let mut config = workspace::shipped("asset", &setup.standin);
    config.insert("apps.asset.mount", "/");
    setup.with(&config.to_string())
}

impl TestServer {
    /// Starts a run that must be interrupted by a review.
    ///
    /// # Panics
    ///
    /// If the response is not that of an interrupted run.
    pub async fn invoke(&self, body: &Value) -> Review {
        let body = self.post(INVOKE, body).await.expect(200);
        let fields: Vec<&String> =
            body.as_object().into_iter().flat_map(serde_json::Map::keys).collect();
        assert_eq!(fields, ["threadId", "reviewPayload"], "{body}");
        let thread = body["threadId"].as_str().expect("a thread id").to_owned();
        Review { thread, payload: body["reviewPayload"].clone() }
    }

    /// Starts a run from a sentence, like [`TestServer::invoke`].
    pub async fn invoke_text(&self, text: &str) -> Review {
        self.invoke(&json!({ "textInput": text })).await
    }

    /// Starts a run from a picture that shows `text`, like [`TestServer::invoke`].
    pub async fn invoke_image(&self, text: &str) -> Review {
        self.invoke(&json!({ "imageData": picture(text, 0) })).await
    }

    /// Resumes a run with rows for a portfolio.
    pub async fn resume(&self, thread: &str, rows: &Value, portfolio: i64) -> Answer {
        self.resume_with(thread, &confirmed(rows, portfolio)).await
    }

    /// Resumes a run with any document.
    pub async fn resume_with(&self, thread: &str, confirmed: &Value) -> Answer {
        let body = json!({ "threadId": thread, "confirmedData": confirmed });
        self.post(RESUME, &body).await
    }

    /// Creates a portfolio and returns its id.
    ///
    /// # Panics
    ///
    /// If the response has no id.
    pub async fn portfolio(&self, name: &str) -> i64 {
        let made = self.post("/api/portfolios", &json!({ "name": name })).await;
        assert!([200, 201].contains(&made.status), "{made:?}");
        made.body["id"].as_i64().expect("an id")
    }

    /// Returns the model routes of all model requests, in order.
    pub fn model_calls(&self) -> Vec<String> {
        let entries = self.standin().requests();
        let calls = entries.iter().filter(|entry| entry.path == MODEL_PATH);
        calls.map(|entry| entry.model.clone().unwrap_or_default()).collect()
    }

    /// Returns the model requests of one route.
    pub fn model_requests(&self, route: &str) -> Vec<Entry> {
        let mut entries = self.standin().requests();
        entries.retain(|entry| entry.path == MODEL_PATH && entry.model.as_deref() == Some(route));
        entries
    }

    /// Returns the search terms of the requests to Massive, in order.
    pub fn massive_searches(&self) -> Vec<String> {
        let entries = self.standin().requests();
        let searches = entries.iter().filter(|entry| entry.path == MASSIVE_PATH);
        searches.map(|entry| entry.query.get("search").cloned().unwrap_or_default()).collect()
    }

    /// Opens the application's SQLite database.
    ///
    /// # Panics
    ///
    /// If it cannot be opened.
    pub async fn sqlite(&self) -> SqliteConnection {
        open_sqlite(&self.setup.workspace.data().join("asset.db")).await
    }

    /// Returns all rows of a table of the SQLite file, ordered by id.
    pub async fn rows(&self, table: &str) -> Vec<Value> {
        sqlite_rows(&mut self.sqlite().await, table).await
    }

    /// Returns the number of rows of `Operation`, `Holding` and `OperationLog`.
    pub async fn counts(&self) -> [usize; 3] {
        let mut database = self.sqlite().await;
        let mut counts = [0; 3];
        for (count, table) in counts.iter_mut().zip(["Operation", "Holding", "OperationLog"]) {
            *count = sqlite_rows(&mut database, table).await.len();
        }
        counts
    }
}

/// Opens a SQLite file that a server may have open as well.
///
/// # Panics
///
/// If it cannot be opened.
pub async fn open_sqlite(file: &std::path::Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .busy_timeout(std::time::Duration::from_secs(10));
    SqliteConnection::connect_with(&options).await.expect("the database opens")
}

/// Returns all rows of a table as JSON, ordered by id.
///
/// # Panics
///
/// If the table cannot be read.
pub async fn sqlite_rows(database: &mut SqliteConnection, table: &str) -> Vec<Value> {
    let columns = format!(
        "SELECT group_concat(quote(name) || ', \"' || name || '\"') FROM pragma_table_info('{table}')"
    );
    let columns: String = sqlx::query_scalar(AssertSqlSafe(columns))
        .fetch_one(&mut *database)
        .await
        .expect("columns");
    let rows = format!("SELECT json_object({columns}) FROM \"{table}\" ORDER BY id");
    let rows: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(database).await.expect("rows");
    rows.iter().map(|row| serde_json::from_str(row).expect("JSON")).collect()
}

/// Returns all rows of a PostgreSQL table as JSON, ordered by id.
///
/// # Panics
///
/// If the table cannot be read.
pub async fn postgres_rows(url: &str, table: &str) -> Vec<Value> {
    let mut database = PgConnection::connect(url).await.expect("the database opens");
    let rows = format!("SELECT row_to_json(t)::text FROM \"{table}\" t ORDER BY id");
    let rows: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut database).await.expect("rows");
    rows.iter().map(|row| serde_json::from_str(row).expect("JSON")).collect()
}
