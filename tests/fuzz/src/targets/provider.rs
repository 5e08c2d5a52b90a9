//! Responses of Gemini and Anthropic, and error responses in OpenAI's format. The first byte of the
//! input selects provider, form and status; the rest is the body. The bytes arrive over a
//! connection. The body is also parsed in chunks, as in the target `stream`.

use std::sync::{Mutex, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use wattle_graph::llm::{CompletionRequest, Delta, Message, Part, Role};
use wattle_model::config::ProviderKind;
use wattle_model::recorded::Recorded;
use wattle_model::{ModelConfig, Routes};
use wattle_run::ports::model::DeltaSink;
use wattle_run::ports::{Caller, Model as _};
use wattle_store::InMemoryBlobs;

use super::stream::{self, content_of_completion, content_of_deltas};
use super::{caller, lock, serve};

/// Providers, by the lowest bits of the first byte.
const KINDS: [(&str, ProviderKind); 4] = [
    ("gemini", ProviderKind::Gemini),
    ("anthropic", ProviderKind::Anthropic),
    ("gemini", ProviderKind::Gemini),
    ("openai", ProviderKind::Openai),
];

/// Bits of the first byte: whether the response is a stream, and the position of its status.
const STREAMS: u8 = 1 << 2;
const STATUS_SHIFT: u8 = 3;

/// Statuses, by the bits that follow. Half of them are successful.
const STATUSES: [StatusCode; 8] = [
    StatusCode::OK,
    StatusCode::OK,
    StatusCode::OK,
    StatusCode::OK,
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
];

/// Maximum size of a failure's message, in bytes. The message quotes only a part of the response.
const MESSAGE_BYTES: usize = 8 << 10;

/// Passes the body to the client of a provider.
pub fn run(bytes: &[u8]) {
    let Some((&first, body)) = bytes.split_first() else { return };
    let world = World::get();
    let number = usize::from(first) % KINDS.len();
    stream::check(&world.recorded[number], body);
    let (kind, _) = KINDS[number];
    let streams = first & STREAMS != 0;
    let status = STATUSES[usize::from(first >> STATUS_SHIFT) % STATUSES.len()];
    let form = if streams { "text/event-stream" } else { "application/json" };
    *lock(world.answer) = (status, form, Bytes::copy_from_slice(body));
    let request = request(&format!("{kind}-{streams}"));
    let pieces = Pieces::default();
    let answer = crate::wait(world.routes.complete(&world.caller, &request, &world.blobs, &pieces));
    let pieces = std::mem::take(&mut *lock(&pieces.0));
    match answer {
        Ok(_) if status != StatusCode::OK => panic!("a completion in spite of status {status}"),
        Ok(answer) if streams => {
            assert_eq!(
                content_of_completion(&answer),
                content_of_deltas(&pieces),
                "the deltas differ from the completion"
            );
        }
        Ok(_) => {}
        Err(failure) => {
            assert!(failure.message.len() <= MESSAGE_BYTES, "{}", failure.message.len());
        }
    }
}

/// A server that responds with the input, and routes to it.
struct World {
    answer: &'static Mutex<(StatusCode, &'static str, Bytes)>,
    routes: Routes,
    /// A parser for each of [`KINDS`].
    recorded: [Recorded; KINDS.len()],
    caller: Caller,
    blobs: InMemoryBlobs,
}

impl World {
    fn get() -> &'static Self {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(|| crate::wait(Self::new()))
    }

    async fn new() -> Self {
        static ANSWER: Mutex<(StatusCode, &str, Bytes)> =
            Mutex::new((StatusCode::OK, "", Bytes::new()));
        let answers = Router::new().fallback(async || answered(&lock(&ANSWER)));
        let address = serve(answers).await;
        let routes = routes(&format!("http://{address}"));
        let recorded = KINDS.map(|(_, kind)| stream::recorded(kind));
        Self { answer: &ANSWER, routes, recorded, caller: caller(), blobs: InMemoryBlobs::new() }
    }
}

fn answered((status, form, body): &(StatusCode, &'static str, Bytes)) -> Response {
    (*status, [(header::CONTENT_TYPE, *form)], Body::from(body.clone())).into_response()
}

/// Returns a route for each provider, with and without streams, and without retries.
fn routes(base: &str) -> Routes {
    let (mut providers, mut routes) = (json!({}), json!({}));
    for kind in ["gemini", "anthropic", "openai"] {
        for streams in [true, false] {
            let name = format!("{kind}-{streams}");
            providers[&name] = json!({
                "kind": kind, "base_url": base, "key_env": "KEY", "stream": streams,
            });
            routes[&name] = json!({ "provider": name, "model": "model", "retries": 0 });
        }
    }
    let table: Value = json!({ "providers": providers, "routes": routes });
    let table: ModelConfig = serde_json::from_value(table).expect("the table is valid");
    Routes::new(table, &|_| Some("key".to_owned())).expect("the table is valid")
}

fn request(route: &str) -> CompletionRequest {
    let messages = vec![Message { role: Role::User, parts: vec![Part::Text("say it".into())] }];
    CompletionRequest::new(route, messages)
}

/// The emitted deltas.
#[derive(Default)]
struct Pieces(Mutex<Vec<Delta>>);

impl DeltaSink for Pieces {
    fn push(&self, delta: Delta) {
        lock(&self.0).push(delta);
    }
}
