//! Real HTTP servers on loopback that stand in for the services Wattle talks to.
//!
//! One server speaks all of them on one port:
//!
//! | path | service |
//! |---|---|
//! | `/v1/chat/completions`, also under `/openai` and without `/v1` | OpenAI and compatible |
//! | `/v1beta/models/{model}:generateContent` | Gemini |
//! | `/v1/messages`, `/anthropic/v1/messages` | Anthropic |
//! | `/v3/reference/tickers` | Massive ticker search |
//! | `/echo` `/slow/{ms}` `/status/{code}` `/redirect?to=` | HTTP itself |
//! | `/big/{bytes}` `/count/{name}` | HTTP itself |
//! | `/__faults` `/__requests` `/__release` | control |
//!
//! Answers of the models are worked out from the request by plain rules. What goes wrong is
//! said beforehand with a [`FaultRule`]; what was asked is in the [journal](Entry). A [`Gate`]
//! holds requests back until the test has looked around, so no test needs to sleep.

mod anthropic;
mod call;
mod classify;
mod control;
mod dates;
mod engine;
mod extract;
mod faults;
mod gate;
mod gemini;
mod image;
mod journal;
mod lex;
mod lookup;
mod massive;
mod numbers;
mod openai;
mod openai_stream;
mod probe;
mod question;
mod reader;
mod sample;
mod securities;
mod server;
mod shape;
mod words;

pub use faults::{Fault, FaultRule, Pattern, StreamQuirks};
pub use gate::Gate;
pub use journal::{Entry, Outcome, redact};
pub use server::{Config, Handle, Server};
