//! A guest that misbehaves on request: one node for each way to do harm or to need care, and a
//! `counter` that does none. Tests put them into graphs of their own.
//!
//! | node | reads | writes | what it does |
//! |---|---|---|---|
//! | `counter` | `number` | `number` | adds one |
//! | `touch` | `document` | `document` | adds one to `document.n`; the benchmarks use it |
//! | `spin` | | | loops for ever |
//! | `hog` | | | allocates until it is stopped |
//! | `recurse` | | | calls itself until the stack ends |
//! | `trap` | | | panics |
//! | `typed_failure` | `retryable`, `succeed_on_attempt` | `number` | fails with code `misdeed`, up to an attempt |
//! | `bad_output` | `mode` | `number` | breaks its promise: `unknown_channel` or `wrong_type` |
//! | `huge_output` | `size` | `text` | writes a text of that many bytes |
//! | `deep_json` | `depth` | `value` | writes arrays nested that deep |
//! | `chatty` | `count` | `number` | asks for the time that often |
//! | `flood_emit` | `count` | `number` | emits that many events |
//! | `ungranted_http` | `url` | `status` | sends a GET there |
//! | `two_questions` | `url`, `route` | `status`, `text`, `answers` | GET, asks, calls a model, asks again |
//! | `remember` | `namespace`, `key`, `document`, `ttl_ms`, `refreshed` | `found` | puts a document and reads it |
//! | `recall` | `prefix`, `filter`, `words` | `found`, `namespaces` | looks for documents |
//! | `forget` | `namespace`, `key` | `found` | deletes a document and reads it |
//! | `call_then_wait` | `route`, `text`, `url` | `text`, `body` | calls a model, then waits for a GET |
//! | `delegate` | `errand` | `result` | runs another graph and waits for it |
//! | `escalate` | `number` | `number` | hands ten times that to the graph above |
//! | `confess` | | `error` | writes what failed in whose place it runs |
//! | `ask_shaped` | `schema` | `answer` | asks for an answer that fits |
//! | `multiply` | `sends` | | sends itself to itself that often, in each task again |
//! | `hoard` | `blobs`, `bytes` | `kept` | puts that many blobs |
//! | `ask_model` | `route`, `schema` | `answer` | asks a model for an answer that fits |
//! | `run_sql` | `database`, `statement` | `rows` | sends a statement to a database |
//! | `jump` | `jumps` | | goes to itself, and says so that often |
//! | `fail_as` | `code`, `message` | | fails with these words |

mod across;
mod appetite;
mod demand;
mod effect;
mod flood;
mod memory;
mod output;

use across::{confess, delegate, escalate};
use appetite::{chatty, flood_emit, hog, recurse, spin};
use demand::{ask_model, fail_as, jump, run_sql};
use effect::{call_then_wait, two_questions, ungranted_http};
use flood::{ask_shaped, hoard, multiply};
use memory::{forget, recall, remember};
use output::{bad_output, counter, deep_json, huge_output, touch, trap, typed_failure};

wattle_plugin::manifest!(include_str!("../manifest.toml"));

wattle_plugin::export! {
    nodes: [
        counter,
        touch,
        spin,
        hog,
        recurse,
        trap,
        typed_failure,
        bad_output,
        huge_output,
        deep_json,
        chatty,
        flood_emit,
        ungranted_http,
        two_questions,
        call_then_wait,
        delegate,
        escalate,
        confess,
        remember,
        recall,
        forget,
        ask_shaped,
        multiply,
        hoard,
        ask_model,
        run_sql,
        jump,
        fail_as,
    ],
}
