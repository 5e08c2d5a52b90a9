//! Conditions that compare all pairs of items.

use serde_json::{Value, json};

use super::calm;

/// Items of the state.
const ITEMS: u32 = 20_000;

/// Returns a graph with a branch that has this condition.
fn graph(name: &str, condition: &str) -> String {
    format!(
        r#"
[graphs.{name}]
entry = "counter"
[graphs.{name}.channels.number]
[graphs.{name}.channels.op]
[graphs.{name}.nodes.counter]
[[graphs.{name}.branches]]
name = "way"
from = "counter"
cases = [{{ when = "{condition}", to = "counter" }}, {{ to = "END" }}]
"#
    )
}

fn items() -> Value {
    json!({ "number": 0, "op": (0..ITEMS).collect::<Vec<_>>() })
}

#[tokio::test]
async fn conditions_have_a_budget_of_steps() {
    let nested = "state.op.exists(a, state.op.exists(b, a + b < 0))";
    let flat = "state.op.exists(a, a + 50000 in state.op)";
    let honest = "state.op.exists(a, a == 19999) && state.number < 3";
    let graphs = [("nested", nested), ("flat", flat), ("ordinary", honest)];
    let graphs: String = graphs.map(|(name, condition)| graph(name, condition)).concat();
    let server = calm::start(&graphs).await;
    for name in ["nested", "flat"] {
        let failure = calm::fails_at(&server, name, items(), "condition_steps").await;
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("state.op.exists"), "{message}");
    }
    let run = server.run("misdeeds", "ordinary", items()).await;
    assert_eq!((&run["status"], &run["state"]["number"]), (&json!("completed"), &json!(3)));
    calm::check(server).await;
}
