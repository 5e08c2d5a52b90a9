//! A guest with tools, ordinary and hostile ones, and with nodes that call tools. It has no
//! manifest, so it asks for what it is granted.
//!
//! | tool | arguments | what it does |
//! |---|---|---|
//! | `echo` | `text` | says the same |
//! | `add` | `a`, `b`, `channel` | answers `{"sum": ...}` and writes it to `channel`, if one is named |
//! | `flagged` | `number` | gets even wrong arguments; answers `{"raw": ..., "violations": [...]}` |
//! | `fail` | `code`, `retryable` | fails with code `misdeed`, or another |
//! | `wrong` | `text` | answers `text` as an error for the model |
//! | `whoami` | | answers with its call context and what it sees of the state |
//! | `ask_first` | `question` | asks a person, answers with the answer |
//! | `nested` | `calls` | calls tools, all at once; answers as the node `call_tools` does |
//! | `net` | `url` | GET there; answers with the body |
//! | `slow_then` | `url`, `text` | GET there, then answers `text` |
//! | `effect` | `url`, `key` | POST there, with an idempotency key if one is given; answers with the status |
//! | `effect_then_ask` | `url`, `question` | POST there, then asks; answers with both |
//! | `other_db` | `database`, `statement` | queries a database; answers with the rows |
//! | `files` | `path` | reads a file; answers with what the standard library says |
//! | `env` | `name` | reads an environment variable; likewise |
//! | `secret_peek` | | answers with all settings it sees |
//! | `spin` | | loops for ever |
//! | `hog` | | allocates until it is stopped |
//! | `trap` | | panics |
//! | `huge` | `mib` | answers with so many MiB of text |
//! | `deep` | `depth` | answers with arrays nested that deep |
//!
//! | node | reads | writes | what it does |
//! |---|---|---|---|
//! | `list_tools` | | `tools` | names, descriptions and hints of the tools it sees |
//! | `call_tools` | `calls` | `results` | calls tools, all at once, and applies their updates |
//! | `call_tool` | `call` | `results` | calls one tool by itself, likewise |
//! | `watch` | `route`, `text`, `most` | `text`, `pieces` | looks at a model's tokens, at most at so many |
//! | `configured` | | `config` | writes its configuration: `times` (a number, 1 unless said) |
//!
//! `PUT`, `GET` and `DELETE` of `/routes/{route}` set, read and remove a model route of the tenant;
//! `GET /models/{route}` says what stands behind one, and `POST /call` calls a tool.

mod appetite;
mod caller;
mod plain;
mod reach;
mod tenant;

use appetite::{deep, hog, huge, spin, trap};
use caller::{call_tool, call_tools, configured, list_tools, nested, watch};
use plain::{add, ask_first, echo, fail, flagged, whoami, wrong};
use reach::{effect, effect_then_ask, env, files, net, other_db, secret_peek, slow_then};
use tenant::{call, get_route, model, remove_route, set_route};

wattle_plugin::export! {
    nodes: [list_tools, call_tools, call_tool, watch, configured],
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
