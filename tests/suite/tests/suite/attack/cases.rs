//! The attacks that the benchmark measures as well, see `wattle_suite::attack`.
//!
//! What attacks did to earlier versions of the host, and where it is tried now. A name in this
//! column is one of an attack here; a path leads to other tests, where the host of the attack is not
//! needed.
//!
//! | attack | tried by |
//! |---|---|
//! | schema that doubles: of a question, an answer of a model, a tool's arguments, a channel | `question-schema`, `model-schema`, `tool-schema`, `super::schemas` |
//! | value that takes a validator long | `large-answer`, `super::schemas` |
//! | tasks that make tasks, and a start after that | `sends`, `super::sends` |
//! | plugins folder with links, pipes, devices, paths out of it | `super::files` |
//! | condition that compares everything with everything | `conditions`, `super::conditions` |
//! | task that keeps blobs | `blobs`, `super::blobs` |
//! | huge values of SQLite, the host's own tables | `sql`, `host/sql/tests/it/writers.rs` |
//! | half of a head, half of a body, connections without a request | `half-requests`, `super::listeners` |
//! | component that compiles for minutes, many at once | `host/cli/tests/it/compile.rs`, `host/sandbox/src/compile` |
//! | hundreds of thousands of gotos, and a cancel | `gotos` |
//! | look-alikes in names, control characters in failures | `words`, `host/sandbox/tests/sandbox/names.rs` |
//! | `Host` headers that name another host | `hosts`, `host/api/src/guard.rs` |
//! | streams that nobody reads | `silent-streams`, `super::callers`, `super::listeners` |
//! | description of a plugin without an end | `host/sandbox/tests/sandbox/load.rs` |
//! | models that answer with nothing, without an end, with too much | `model-comments`, `model-deltas`, `model-endless`, `model-large`, `host/model/tests/routes/endless.rs` |
//! | servers of tools that answer without an end, too deep, with a list without an end | `tool-endless`, `tool-deep`, `tool-pages`, `host/mcp/tests/servers/hostile.rs` |
//! | compiled code that was changed | `super::cache`, `host/sandbox/tests/sandbox/cache.rs` |
//! | WebSockets that send without end, or never read | `sockets`, `super::sockets` |
//! | name that resolves differently the second time | `host/net/src/resolver.rs` |
//! | 200 files at once, a file replaced while it is read | `files`, `super::files` |
//! | run that cannot be gone on with after a start | `super::poisoned` |
//! | stop while guests, conditions and validation take all processors | `busy`; every attack here goes on while the host stops |

use wattle_suite::attack::CASES;

use super::calm;

macro_rules! withstands {
    ($($test:ident: $case:literal,)*) => {
        const TESTED: &[&str] = &[$($case),*];

        $(#[tokio::test]
        async fn $test() {
            calm::withstand($case).await;
        })*
    };
}

withstands! {
    question_schema: "question-schema",
    large_answer: "large-answer",
    model_schema: "model-schema",
    sends: "sends",
    gotos: "gotos",
    conditions: "conditions",
    blobs: "blobs",
    sql: "sql",
    words: "words",
    busy: "busy",
    half_requests: "half-requests",
    silent_streams: "silent-streams",
    sockets: "sockets",
    hosts: "hosts",
    model_comments: "model-comments",
    model_deltas: "model-deltas",
    model_endless: "model-endless",
    model_large: "model-large",
    tool_schema: "tool-schema",
    tool_endless: "tool-endless",
    tool_deep: "tool-deep",
    tool_pages: "tool-pages",
    files: "files",
}

#[test]
fn every_attack_has_a_test() {
    let all: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(all, TESTED);
}
