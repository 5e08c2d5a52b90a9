//! A guest that misbehaves on request, with one node for each kind of harm, and a harmless node
//! `counter`. Tests define graphs of these nodes.
//!
//! | node | reads | writes | behavior |
//! |---|---|---|---|
//! | `counter` | `number` | `number` | adds one |
//! | `touch` | `document` | `document` | adds one to `document.n`; the benchmarks use it |
//! | `spin` | | | loops forever |
//! | `hog` | | | allocates until the host ends it |
//! | `occupy` | `bytes`, `url` | | holds memory while a GET request waits |
//! | `recurse` | | | calls itself until the stack overflows |
//! | `trap` | | | panics |
//! | `typed_failure` | `retryable`, `succeed_on_attempt` | `number` | fails with code `misdeed`, up to an attempt |
//! | `bad_output` | `mode` | `number` | violates its output schema: `unknown_channel` or `wrong_type` |
//! | `huge_output` | `size` | `text` | writes a text of `size` bytes |
//! | `many_numbers` | `count` | `value` | writes a list of `count` zeros |
//! | `deep_json` | `depth` | `value` | writes arrays nested `depth` levels deep |
//! | `chatty` | `count` | `number` | reads the clock `count` times |
//! | `roll` | `count`, `bytes` | `number` | reads `bytes` random bytes `count` times |
//! | `flood_emit` | `count` | `number` | emits `count` events |
//! | `flood_log` | `count`, `numbers` | `number` | logs `count` messages with a field of `numbers` zeros |
//! | `ungranted_http` | `url` | `status` | sends a GET request |
//! | `two_questions` | `url`, `route` | `status`, `text`, `answers` | GET request, interrupt, model call, interrupt |
//! | `remember` | `namespace`, `key`, `document`, `ttl_ms`, `refreshed` | `found` | puts a document and reads it |
//! | `recall` | `prefix`, `filter`, `words` | `found`, `namespaces` | searches documents |
//! | `forget` | `namespace`, `key` | `found` | deletes a document and reads it |
//! | `call_then_wait` | `route`, `text`, `url` | `text`, `body` | calls a model, then waits for a GET request |
//! | `delegate` | `errand` | `result` | runs a subgraph and waits for its end |
//! | `start_many` | `graph`, `count`, `bytes` | | starts `count` subgraphs with a text of `bytes` bytes each |
//! | `escalate` | `number` | `number` | writes ten times the number to the parent graph |
//! | `confess` | | `error` | writes the failure that it handles |
//! | `ask_shaped` | `schema` | `answer` | raises an interrupt with a schema for the answer |
//! | `multiply` | `sends` | | sends `sends` tasks to itself, each of which does the same |
//! | `spread` | `groups` | | sends the tasks of each group to the group's node |
//! | `hoard` | `blobs`, `bytes` | `kept` | stores blobs |
//! | `ask_model` | `route`, `schema` | `answer` | requests a document that matches a schema from a model |
//! | `recite` | `route`, `messages` | | gives the whole conversation to a model |
//! | `run_sql` | `database`, `statement` | `rows` | executes a statement on a database |
//! | `jump` | `jumps` | | goes to itself with `jumps` gotos |
//! | `fail_as` | `code`, `message` | | fails with the given code and message |
//! | `use_tool` | `tool` | `text` | calls a tool without arguments |
//! | `recollect` | | `recollected`, `forgotten` | looks for marks of earlier calls, and leaves marks |
//!
//! The tool `doubled` has an arguments schema that is small and expands without bounds.
//!
//! `GET /wait?url=...` sends a GET request and waits for the response. `GET /clock` reads the clock
//! without end, and `GET /threads` searches for threads without end.

mod across;
mod appetite;
mod demand;
mod doubling;
mod effect;
mod flood;
mod handlers;
mod memory;
mod output;
mod recollection;

use across::{confess, delegate, escalate, start_many};
use appetite::{chatty, flood_emit, flood_log, hog, occupy, recurse, roll, spin};
use demand::{ask_model, fail_as, jump, recite, run_sql};
use doubling::{doubled, use_tool};
use effect::{call_then_wait, two_questions, ungranted_http};
use flood::{ask_shaped, hoard, multiply, spread};
use handlers::{read_clock, search, wait};
use memory::{forget, recall, remember};
use output::{
    bad_output, counter, deep_json, huge_output, many_numbers, touch, trap, typed_failure,
};
use recollection::recollect;

wattle_plugin::manifest!(include_str!("../manifest.toml"));

wattle_plugin::export! {
    nodes: [
        counter,
        touch,
        spin,
        hog,
        occupy,
        recurse,
        trap,
        typed_failure,
        bad_output,
        huge_output,
        many_numbers,
        deep_json,
        chatty,
        roll,
        flood_emit,
        flood_log,
        ungranted_http,
        two_questions,
        call_then_wait,
        delegate,
        start_many,
        escalate,
        confess,
        remember,
        recall,
        forget,
        ask_shaped,
        multiply,
        spread,
        hoard,
        ask_model,
        recite,
        run_sql,
        jump,
        fail_as,
        use_tool,
        recollect,
    ],
    tools: [doubled],
    handlers: [wait, read_clock, search],
}
