//! The attacks of `wattle_suite::attack`, which the benchmark measures as well.
//!
//! The table lists attacks that harmed earlier versions of the host, and their tests. A name in the
//! second column is that of an attack in this file. A path is that of other tests, which do not
//! need the host of the attacks.
//!
//! | attack | tested by |
//! |---|---|
//! | schema that expands to 2^n schemas: of an interrupt, a completion, a tool's arguments, a channel | `question-schema`, `model-schema`, `plugin-tool-schema`, `tool-schema`, `super::schemas` |
//! | value that takes long to validate | `large-answer`, `super::schemas` |
//! | tasks that send tasks, and a start after that | `sends`, `super::sends`, `super::killed` |
//! | plugins folder with links, pipes, devices, paths out of it | `super::files` |
//! | condition that compares all pairs of items | `conditions`, `super::conditions` |
//! | task that stores blobs | `blobs`, `super::blobs` |
//! | task that reads random bytes without end | `random` |
//! | task that starts subgraphs with large inputs | `inputs` |
//! | task that logs without end | `logs`, `tests/suite/tests/suite/engine/caps/messages.rs` |
//! | state that grows without end, outcomes that wait for the last task | `state`, `host/graph/src/step/load.rs`, `tests/suite/tests/suite/engine/caps/state.rs` |
//! | tasks that hold memory while they wait | `hog`, `host/sandbox/tests/sandbox/guests_memory.rs` |
//! | model calls with long conversations, at once | `histories`, `tests/suite/tests/suite/engine/run_memory.rs` |
//! | huge values of SQLite, the host's own tables | `sql`, `host/sql/tests/it/writers.rs` |
//! | incomplete head, incomplete body, connections without a request | `half-requests`, `super::listeners` |
//! | component that compiles for minutes, many at once, at a start or later | `components`, `super::components`, `host/cli/tests/it/loading.rs`, `host/cli/tests/it/compile.rs`, `host/sandbox/src/compile` |
//! | hundreds of thousands of gotos, and a cancel | `gotos` |
//! | look-alikes in names, control characters in failures | `words`, `host/sandbox/tests/sandbox/names.rs` |
//! | small component with large compiled code | `large-code`, `host/sandbox/src/compile/process.rs`, `host/cli/tests/it/compile.rs` |
//! | `Host` headers that name another host | `hosts`, `host/api/src/guard.rs` |
//! | web handlers that call the host without end, or that wait, also for clients that have left | `handlers`, `tests/suite/tests/suite/engine/handlers.rs` |
//! | web handler that searches for threads without end | `searches`, `tests/suite/tests/suite/engine/handlers.rs` |
//! | runs of one caller that take all places and wait for more | `waiting-runs`, `tests/suite/tests/suite/engine/turns.rs` |
//! | many threads with large states | `many-states`, `host/run/src/state_cache.rs` |
//! | readers at many positions of a log with large events | `large-events`, `pages_are_bounded_in_bytes` of the stores |
//! | history of large states | `history`, `checkpoint_pages_are_bounded_in_bytes` of the stores |
//! | streams that no client reads | `silent-streams`, `super::callers`, `super::listeners` |
//! | endless description of a plugin | `host/sandbox/tests/sandbox/load.rs` |
//! | completions that are empty, endless or too large | `model-comments`, `model-deltas`, `model-endless`, `model-large`, `host/model/tests/routes/endless.rs` |
//! | MCP servers with endless or too deep outputs, or an endless tool list | `tool-endless`, `tool-deep`, `tool-pages`, `host/mcp/tests/servers/hostile.rs` |
//! | HTTP services with endless headers, an endless body, or a byte at a time | `http-endless`, `host/net/tests` |
//! | services that send many large responses at once | `host/run/src/service_memory.rs`, `host/net/tests`, `host/model/tests/routes/memory.rs`, `host/mcp/src/connect` |
//! | short JSON whose values take much memory | `model-numbers`, `tool-numbers`, `body-numbers`, `output-numbers`, `host/run/src/json/bounded.rs`, `host/sandbox/tests/sandbox/numbers.rs` |
//! | compiled code that was changed | `super::cache`, `host/sandbox/tests/sandbox/cache.rs` |
//! | WebSockets that send without end, or never read | `sockets`, `super::sockets` |
//! | name that resolves differently the second time | `host/net/src/resolver.rs` |
//! | 200 files at once, a file replaced while it is read | `files`, `super::files` |
//! | run that cannot be recovered after a start | `super::poisoned` |
//! | stop while guests, conditions and validation use all cores | `busy`; every attack here continues while the host stops |

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
    plugin_tool_schema: "plugin-tool-schema",
    sends: "sends",
    gotos: "gotos",
    conditions: "conditions",
    blobs: "blobs",
    random: "random",
    inputs: "inputs",
    logs: "logs",
    state: "state",
    output_numbers: "output-numbers",
    hog: "hog",
    histories: "histories",
    sql: "sql",
    words: "words",
    busy: "busy",
    half_requests: "half-requests",
    silent_streams: "silent-streams",
    sockets: "sockets",
    hosts: "hosts",
    body_numbers: "body-numbers",
    large_events: "large-events",
    history: "history",
    handlers: "handlers",
    searches: "searches",
    waiting_runs: "waiting-runs",
    many_states: "many-states",
    model_comments: "model-comments",
    model_deltas: "model-deltas",
    model_endless: "model-endless",
    model_large: "model-large",
    model_numbers: "model-numbers",
    tool_schema: "tool-schema",
    tool_endless: "tool-endless",
    tool_deep: "tool-deep",
    tool_pages: "tool-pages",
    tool_numbers: "tool-numbers",
    http_endless: "http-endless",
    files: "files",
    components: "components",
    large_code: "large-code",
}

#[test]
fn every_attack_has_a_test() {
    let all: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(all, TESTED);
}
