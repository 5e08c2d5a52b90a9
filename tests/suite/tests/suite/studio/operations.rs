//! An operator who looks after the host.

use serde_json::json;
use wattle_kit::need;
use wattle_suite::answer::Answer;
use wattle_suite::{browser, misdeeds};

use super::{KEY, STUDIO, TALK, run, served_with};

/// The program of an operator who looks after the host.
const PROGRAM: &str = "studio-operations.js";

/// A graph that reaches the limit of outputs.
const LARGE: &str = r#"
[graphs.large]
entry = "huge_output"
[graphs.large.channels.size]
[graphs.large.channels.text]
[graphs.large.nodes.huge_output]
"#;

/// The price of the model.
const PRICES: &str = "[model.prices]\nchat = { input = 1000.0, output = 1000.0 }\n";

#[tokio::test]
async fn an_operator_sees_what_the_host_did_and_what_it_does_next() {
    let server = need!(served_with(KEY, &[LARGE, TALK].concat(), PRICES).await);
    for (graph, input) in [
        ("fail", json!({ "code": "misdeed", "message": "no such order" })),
        ("large", misdeeds::HUGE_OUTPUT.input()),
        ("talk", json!({ "route": "chat" })),
    ] {
        run(&server, None, &json!({ "graph": graph, "input": input, "wait": true })).await;
    }
    let later = json!({
        "assistant_id": "count",
        "input": { "number": 1 },
        "after_seconds": 3_600,
        "webhook": "https://hooks.example/<x>",
    });
    let daily = json!({
        "assistant_id": "count",
        "input": { "number": 1 },
        "schedule": "0 9 * * *",
    });
    for (path, body) in [("/runs", later), ("/runs/crons", daily)] {
        let request = server.request("POST", path).json(&body);
        Answer::of(request.bearer_auth(KEY)).await.expect(200);
    }
    need!(browser::at_a_browser(PROGRAM, "operates", &server.url(STUDIO)).await);
}
