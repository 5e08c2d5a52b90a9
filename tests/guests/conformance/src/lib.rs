//! The conformance plugin in Rust. The folders beside it have the same plugin in TypeScript, Python
//! and C, and the host cannot tell them apart: the suite compares their descriptions and the events
//! of their runs.
//!
//! | node | calls |
//! |---|---|
//! | `read_settings` | settings |
//! | `draw` | a model, for a picture, and blobs |
//! | `delegate` | graphs of the app, of which one fails and one asks |
//! | `whose` | routes of the tenant, which a node does not get |
//! | `words` | log, events, progress |
//! | `echo` | none: any JSON value comes back |
//! | `keep` | none: it has a configuration |
//! | `approve` | an interrupt |
//! | `ask` | a model, for a text and for a document |
//! | `stream` | a model, and events for the pieces of its completion |
//! | `fetch` | HTTP |
//! | `batch` | a model and HTTP, each with several requests at once |
//! | `book` | SQL, in a transaction |
//! | `remember` | the memory and blobs |
//! | `both`, `buy` | the tools `count_words` and `pay` |
//! | `list_tools` | the list of tools |
//! | `spread`, `square`, `total` | none: they send, overwrite and go to nodes |
//! | `fail` | none |
//! | `measure` | clock, random bytes, settings and an interrupt |
//!
//! What a type says is part of the description, so the types have no documentation of their own.

mod basic;
mod calls;
mod flow;
mod services;
mod tool;
mod web;

use basic::{approve, echo, fail, keep, words};
use calls::{ask, batch, book, both, buy, fetch, list_tools, measure, remember, stream};
use flow::{max, spread, square, total};
use services::{delegate, draw, own_model, read_settings, whose};
use tool::{count_words, pay};
use web::{follow, order, urgency};

wattle_plugin::manifest!("llm = [\"chat\"]\n");

wattle_plugin::export! {
    nodes: [
        read_settings,
        draw,
        delegate,
        whose,
        words,
        echo,
        keep,
        approve,
        ask,
        stream,
        fetch,
        batch,
        book,
        remember,
        both,
        list_tools,
        buy,
        spread,
        square,
        total,
        fail,
        measure,
    ],
    tools: [count_words, pay],
    reducers: [max],
    handlers: [order, urgency, follow, own_model],
}
