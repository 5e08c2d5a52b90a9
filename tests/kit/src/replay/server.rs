//! Replays over HTTP.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures::stream;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::parse::Case;
use super::player::{Answer, Piece, Player};

/// Maximum size of a request, in bytes.
const REQUEST_BYTES: usize = 16 << 20;

/// Cases that are replayed on loopback, each below its own URL. Dropping the value stops the
/// server.
#[derive(Debug)]
pub struct Replays {
    base_url: String,
    players: Arc<BTreeMap<String, Player>>,
    task: JoinHandle<()>,
}

impl Replays {
    /// Replays cases on a free port.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub async fn start(cases: &[Case]) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let players = cases.iter().map(|case| (case.name.clone(), Player::new(case)));
        let players: Arc<BTreeMap<String, Player>> = Arc::new(players.collect());
        let router = Router::new().fallback(play).with_state(players.clone());
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { base_url, players, task })
    }

    /// Returns the base URL of a case, without a trailing slash.
    pub fn url(&self, case: &Case) -> String {
        format!("{}/{}", self.base_url, case.name)
    }

    /// Returns the problems of a case. See [`Player::problems`].
    pub fn problems(&self, case: &Case) -> Vec<String> {
        self.players.get(&case.name).map(Player::problems).unwrap_or_default()
    }
}

impl Drop for Replays {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(State(players): State<Arc<BTreeMap<String, Player>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, REQUEST_BYTES).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let (name, rest) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let Some(player) = players.get(name) else {
        return response(Answer { status: 404, headers: Vec::new(), body: Vec::new() });
    };
    let header = |name: &str| {
        head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    response(player.answer(head.method.as_str(), &format!("/{rest}"), &header, &body))
}

fn response(answer: Answer) -> Response {
    let pieces = answer.body.into_iter().map(|piece| match piece {
        Piece::Bytes(text) => Ok(text),
        Piece::End => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    });
    let mut builder = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        builder = builder.header(name, value);
    }
    builder.body(Body::from_stream(stream::iter(pieces))).unwrap_or_else(|error| {
        let mut response = Response::new(Body::from(error.to_string()));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}
