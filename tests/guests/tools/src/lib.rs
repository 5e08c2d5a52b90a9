//! A guest with ordinary and hostile tools, and with nodes that call tools. It has no manifest, so
//! its needs are equal to its grants.
//!
//! | tool | arguments | behavior |
//! |---|---|---|
//! | `echo` | `text` | returns `text` |
//! | `add` | `a`, `b`, `channel` | returns `{"sum": ...}` and writes the sum to `channel`, if it is given |
//! | `flagged` | `number` | accepts invalid arguments; returns `{"raw": ..., "violations": [...]}` |
//! | `fail` | `code`, `retryable` | fails with `code`, by default `misdeed` |
//! | `wrong` | `text` | returns `text` as an error for the model |
//! | `whoami` | | returns its call context and its visible state |
//! | `ask_first` | `question` | raises an interrupt and returns the answer |
//! | `nested` | `calls` | calls tools in one call batch; returns results as the node `call_tools` |
//! | `net` | `url` | sends a GET request; returns the body |
//! | `slow_then` | `url`, `text` | sends a GET request, then returns `text` |
//! | `effect` | `url`, `key` | sends a POST request, with an idempotency key if one is given; returns the status |
//! | `effect_then_ask` | `url`, `question` | sends a POST request, then raises an interrupt; returns status and answer |
//! | `other_db` | `database`, `statement` | queries a database; returns column names and the number of rows |
//! | `files` | `path` | reads a file; returns its text or the error |
//! | `env` | `name` | reads an environment variable; returns its value or the error |
//! | `secret_peek` | | returns all visible settings |
//! | `spin` | | loops forever |
//! | `hog` | | allocates until the host ends it |
//! | `trap` | | panics |
//! | `huge` | `mib` | returns a text of `mib` MiB |
//! | `deep` | `depth` | returns arrays nested `depth` levels deep |
//!
//! | node | reads | writes | behavior |
//! |---|---|---|---|
//! | `list_tools` | | `tools` | lists names, descriptions and hints of the granted tools |
//! | `call_tools` | `calls` | `results` | calls tools in one call batch, and writes their updates |
//! | `call_tool` | `call` | `results` | calls one tool, and writes its updates |
//! | `watch` | `route`, `text`, `most` | `text`, `pieces` | reads the stream of a model, up to `most` events |
//! | `converse` | `route`, `history`, `messages` | `results`, `read` | calls a model with `history` in `extra`: alone, twice in a call batch, and as a stream |
//! | `configured` | | `config` | writes its configuration: `times`, a number (default 1) |
//!
//! `PUT`, `GET` and `DELETE` of `/routes/{route}` set, read and remove a model route of the tenant.
//! `GET /models/{route}` describes a route, and `POST /call` calls a tool.

mod appetite;
mod caller;
mod plain;
mod reach;
mod tenant;

use appetite::{deep, hog, huge, spin, trap};
use caller::{call_tool, call_tools, configured, converse, list_tools, nested, watch};
use plain::{add, ask_first, echo, fail, flagged, whoami, wrong};
use reach::{effect, effect_then_ask, env, files, net, other_db, secret_peek, slow_then};
use tenant::{call, get_route, model, remove_route, set_route};

wattle_plugin::export! {
    nodes: [list_tools, call_tools, call_tool, watch, converse, configured],
    tools: [
        echo,
        add,
        flagged,
        fail,
        wrong,
        whoami,
        ask_first,
        nested,
        net,
        slow_then,
        effect,
        effect_then_ask,
        other_db,
        files,
        env,
        secret_peek,
        spin,
        hog,
        trap,
        huge,
        deep,
    ],
    handlers: [set_route, get_route, remove_route, model, call],
}
