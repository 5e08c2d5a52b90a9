//! Subgraphs of real components: a node that starts a subgraph, a node that returns an outcome for
//! the parent graph, and an error handler.

use serde_json::{Value, json};
use wattle_suite::server::{Setup, TestServer};

/// `caller` starts any other graph. `team` runs `office` as a node, which returns an outcome for
/// its parent. Failures in `risky` and `perilous` are handled by a node and by subgraphs.
const GRAPHS: &str = r#"
[graphs.caller]
entry = "delegate"
[graphs.caller.channels]
errand = {}
result = {}
[graphs.caller.nodes.delegate]

[graphs.team]
entry = "office"
[graphs.team.channels.number]
[graphs.team.nodes.office]
graph = "office"
goto = ["counter"]
[graphs.team.nodes.counter]
[graphs.team.nodes.trap]
[[graphs.team.edges]]
from = "office"
to = "trap"

[graphs.office]
entry = "escalate"
[graphs.office.channels.number]
[graphs.office.nodes.escalate]
[graphs.office.nodes.trap]
[[graphs.office.edges]]
from = "escalate"
to = "trap"

[graphs.risky]
entry = "typed_failure"
[graphs.risky.channels]
error = {}
number = {}
retryable = {}
succeed_on_attempt = {}
[graphs.risky.nodes.typed_failure]
on_error = "confess"
[graphs.risky.nodes.confess]
[[graphs.risky.edges]]
from = "confess"
to = "counter"
[graphs.risky.nodes.counter]

[graphs.perilous]
entry = "typed_failure"
[graphs.perilous.channels]
error = {}
number = {}
retryable = {}
succeed_on_attempt = {}
result = {}
errand = {}
[graphs.perilous.nodes.typed_failure]
on_error = "care"
[graphs.perilous.nodes.care]
graph = "care"

[graphs.care]
entry = ["deeper", "delegate"]
[graphs.care.channels]
error = {}
result = {}
errand = {}
[graphs.care.nodes.deeper]
graph = "deeper"
state = "STATE"
[graphs.care.nodes.delegate]

[graphs.deeper]
entry = "confess"
[graphs.deeper.channels.error]
[graphs.deeper.nodes.confess]
"#;

async fn server() -> TestServer {
    server_with("inherit").await
}

/// Starts a server with a state mode of the innermost subgraph.
async fn server_with(state: &str) -> TestServer {
    let graphs = super::sandbox::graphs() + &GRAPHS.replace("STATE", state);
    Setup::misdeeds(&graphs).await.start().await
}

async fn errand(server: &TestServer, graph: &str, input: Value) -> Value {
    let errand = json!({ "errand": { "graph": graph, "input": input } });
    server.run("misdeeds", "caller", errand).await
}

#[tokio::test]
async fn a_node_starts_a_subgraph_and_gets_its_outcome() {
    let server = server().await;
    let run = errand(&server, "counter", json!({ "number": 1 })).await;
    let result = json!({ "outcome": "completed", "state": { "number": 2 } });
    assert_eq!((&run["status"], &run["state"]["result"]), (&json!("completed"), &result), "{run}");
    let run = errand(&server, "typed_failure", json!({})).await;
    assert_eq!(run["state"]["result"]["outcome"], "misdeed", "{run}");
    let run = errand(&server, "nowhere", json!({})).await;
    assert_eq!((&run["status"], &run["failure"]["code"]), (&json!("failed"), &json!("not-found")));
    // A graph that starts itself ends at a limit.
    let errand_of = |inner: Value| json!({ "errand": { "graph": "caller", "input": inner } });
    let deep = (0..12).fold(json!({}), |inner, _| errand_of(inner));
    let run = server.run("misdeeds", "caller", errand_of(deep)).await;
    assert!(run.to_string().contains("limit"), "{run}");
}

#[tokio::test]
async fn interrupts_of_a_started_subgraph_are_raised_and_no_call_is_repeated() {
    let server = server().await;
    let url = format!("{}/count/visits", server.standin().base_url);
    let input = json!({ "url": url, "route": "chat" });
    let run = errand(&server, "two_questions", input).await;
    assert_eq!(run["interrupts"][0]["payload"], json!({ "question": 1 }), "{run}");
    let server = server.restart().await;
    let resume = format!("/api/v1/threads/{}/resume", run["thread"].as_str().unwrap());
    for (answer, status) in [("a", "interrupted"), ("b", "completed")] {
        let body = json!({ "answers": { "": answer }, "wait": true });
        let run = server.post(&resume, &body).await.expect(200);
        assert_eq!(run["status"], status, "{run}");
        if status == "completed" {
            assert_eq!(run["state"]["result"]["state"]["answers"], json!(["a", "b"]), "{run}");
        }
    }
    let paths: Vec<_> = server.standin().requests().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/count/visits", "/v1/chat/completions"], "each service is called once");
}

#[tokio::test]
async fn an_outcome_for_the_parent_ends_the_subgraph_and_selects_the_next_node() {
    let server = server().await;
    let run = server.run("misdeeds", "team", json!({ "number": 4 })).await;
    assert_eq!(
        (&run["status"], &run["state"]["number"]),
        (&json!("completed"), &json!(41)),
        "{run}"
    );
    let run = server.run("misdeeds", "office", json!({ "number": 4 })).await;
    assert_eq!((&run["status"], &run["failure"]["code"]), (&json!("failed"), &json!("invalid")));
}

#[tokio::test]
async fn an_error_handler_gets_the_failure() {
    let server = server().await;
    let run = server.run("misdeeds", "risky", json!({ "number": 1 })).await;
    assert_eq!(
        (&run["status"], &run["state"]["number"]),
        (&json!("completed"), &json!(2)),
        "{run}"
    );
    let error = &run["state"]["error"];
    assert_eq!((&error["node"], &error["code"]), (&json!("typed_failure"), &json!("misdeed")));
    // A node that is not an error handler gets no error.
    let deeper = server.run("misdeeds", "deeper", json!({})).await;
    assert_eq!(deeper["state"]["error"], Value::Null, "{deeper}");
}

#[tokio::test]
async fn nodes_of_a_subgraph_that_handles_an_error_get_the_failure() {
    for state in ["inherit", "own", "none"] {
        let server = server_with(state).await;
        let errand = json!({ "graph": "deeper", "input": {} });
        let run = server.run("misdeeds", "perilous", json!({ "errand": errand })).await;
        assert_eq!(run["status"], "completed", "{run}");
        let error = &run["state"]["error"];
        let told = (&error["node"], &error["code"]);
        assert_eq!(told, (&json!("typed_failure"), &json!("misdeed")), "{state}: {run}");
        // A subgraph that a node starts has only its own input.
        let result = json!({ "outcome": "completed", "state": { "error": null } });
        assert_eq!(run["state"]["result"], result, "{state}: {run}");
    }
}

#[tokio::test]
async fn a_started_subgraph_is_edited_by_its_namespace() {
    let server = server().await;
    let url = format!("{}/count/visits", server.standin().base_url);
    let run = errand(&server, "two_questions", json!({ "url": url, "route": "chat" })).await;
    let (thread, asking) = (run["thread"].as_str().unwrap(), &run["interrupts"][0]["namespace"]);
    let edits = json!({ "namespace": asking, "supersteps": [[{ "as_node": "END" }]] });
    let edited = server.post(&format!("/api/v1/threads/{thread}/edits"), &edits).await.expect(200);
    assert_eq!((&edited["namespace"], &edited["source"]), (asking, &json!("update")), "{edited}");
    let body = json!({ "answers": {}, "wait": true });
    let resume = format!("/api/v1/threads/{thread}/resume");
    let run = server.post(&resume, &body).await.expect(200);
    assert_eq!(
        (&run["status"], &run["state"]["result"]["outcome"]),
        (&json!("completed"), &json!("completed"))
    );
}
