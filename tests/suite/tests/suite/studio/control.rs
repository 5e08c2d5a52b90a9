//! An operator who steers threads.

use serde_json::json;
use wattle_kit::need;
use wattle_kit::needs::clients;
use wattle_kit::standin::Pattern;
use wattle_suite::browser;
use wattle_suite::server::Setup;

use super::{HELD, HOSTILE, RUNS, STUDIO, run};

/// The program of an operator who steers threads.
const PROGRAM: &str = "studio-control.js";

/// A graph with a channel that [`STEERED`] does not have.
const FORMER: &str = r#"
[graphs.count]
entry = "counter"
[graphs.count.channels.number]
schema = { type = "integer" }
[graphs.count.channels.note]
[graphs.count.nodes.counter]
"#;

/// The graph without this channel, and one whose first node waits for a service.
const STEERED: &str = r#"
[graphs.count]
entry = "counter"
[graphs.count.channels.number]
schema = { type = "integer" }
[graphs.count.nodes.counter]
[graphs.errand]
entry = "call_then_wait"
[graphs.errand.channels.route]
[graphs.errand.channels.text]
[graphs.errand.channels.url]
[graphs.errand.channels.body]
[graphs.errand.channels.number]
schema = { type = "integer", minimum = 0 }
default = 0
[graphs.errand.nodes.call_then_wait]
[graphs.errand.nodes.counter]
[[graphs.errand.edges]]
from = "call_then_wait"
to = "counter"
"#;

#[tokio::test]
async fn an_operator_migrates_cancels_settles_forks_drains_edits_and_resumes_threads() {
    need!(clients::studio());
    let server = Setup::misdeeds(FORMER).await.start().await;
    let former = json!({
        "graph": "count",
        "input": { "number": 1, "note": HOSTILE },
        "thread_id": "former",
        "wait": true,
    });
    run(&server, None, &former).await;
    server.setup.workspace.add_misdeeds(STEERED);
    let server = server.restart().await;
    let gate = server.standin().gate(Pattern::path(HELD));
    let held = format!("{}{HELD}", server.standin().base_url);
    for thread in ["errand-1", "errand-2"] {
        let input = json!({ "route": "chat", "url": held });
        let start = json!({ "graph": "errand", "input": input, "thread_id": thread });
        server.post(RUNS, &start).await.expect(202);
    }
    gate.arrived(2).await.expect("both runs wait for the service");
    let obey = async |order: &str| match order {
        "open" => gate.open(),
        other => panic!("unexpected order `{other}` of the scenario"),
    };
    need!(browser::with_orders(PROGRAM, "steers", &server.url(STUDIO), obey).await);
    let former = server.get("/api/v1/threads/former").await.expect(200);
    assert_eq!(former["state"], json!({ "number": 2 }), "the note was dropped");
    let settled = server.get("/api/v1/threads/errand-1").await.expect(200);
    assert_eq!(settled["state"]["body"], "settled", "{settled}");
    let requests = server.standin().requests();
    let held = requests.iter().filter(|request| request.path == HELD);
    assert_eq!(held.count(), 2, "no request was sent again");
    let errand = server.get("/api/v1/threads/errand-2").await.expect(200);
    assert_eq!(errand["state"]["number"], 42, "the run went on from the edited state");
}
