//! Stand-ins for the services of Wattle: HTTP servers on loopback.
//!
//! One server implements all of them on one port:
//!
//! | path | service |
//! |---|---|
//! | `/v1/chat/completions`, also under `/openai` and without `/v1` | OpenAI and compatible |
//! | `/v1beta/models/{model}:generateContent`, `:streamGenerateContent` | Gemini |
//! | `/v1beta/models/imagen-...:predict` | Imagen |
//! | `/v1/messages`, `/anthropic/v1/messages` | Anthropic |
//! | `/v3/reference/tickers` | Massive ticker search |
//! | `/v2/acts/{actor}/run-sync-get-dataset-items` | Apify, videos of YouTube |
//! | `/search` | Nominatim |
//! | `/search/photos`, `/photos/{id}/download` | Unsplash |
//! | `/api/public/otel/v1/traces` | Langfuse, OTLP over HTTP |
//! | `/open-apis/...` | Feishu tenant tokens and Bitable records |
//! | `/mcp`, `/mcp/{set}` | MCP servers over streamable HTTP |
//! | `/echo` `/slow/{ms}` `/status/{code}` `/redirect?to=` | HTTP itself |
//! | `/big/{bytes}` `/count/{name}` | HTTP itself |
//! | `/__faults` `/__requests` `/__release` | control |
//!
//! Stand-in models derive their responses from the request by fixed rules. A [`FaultRule`] injects
//! a fault, and [`Imprecise`] makes the models imprecise. The [request log](Entry) records all
//! requests. A [`Gate`] holds requests until the test releases them, so no test needs to sleep.

mod answer;
mod anthropic;
mod anthropic_stream;
mod apify;
mod call;
mod classify;
mod control;
mod dates;
mod deepseek;
mod engine;
mod extract;
mod fault_rule;
mod faults;
mod feishu;
mod gate;
mod gemini;
mod gemini_stream;
mod google_error;
mod google_image;
mod image;
mod imprecise;
mod journal;
mod lex;
mod lookup;
mod massive;
mod mcp;
mod nl2sql;
mod nominatim;
mod numbers;
mod ontology;
mod openai;
mod openai_stream;
mod orders;
mod otlp;
mod probe;
mod question;
mod reader;
mod reasoning;
mod reply;
mod sample;
mod scripted;
mod securities;
mod server;
mod shape;
mod shared;
mod shown;
mod stream;
mod tools;
mod travel;
mod unsplash;
mod videos;
mod words;

pub use deepseek::deepseek_not_found;
pub use fault_rule::FaultRule;
pub use faults::{Fault, Pattern, StreamQuirks, StreamVariant};
pub use feishu::feishu_refusal;
pub use gate::{Gate, StreamGate};
pub use google_error::{google_not_found, google_quota};
pub use imprecise::{Imprecise, Imprecision};
pub use journal::{Entry, Outcome, redact};
pub use mcp::{McpAnswer, McpTool, McpTools, stdio_server};
pub use server::{Config, Handle, Server};
