//! A user who watches the graph of a run, and compares its version with a newer one.

use wattle_kit::need;
use wattle_kit::needs::clients;
use wattle_kit::standin::Pattern;
use wattle_suite::browser;
use wattle_suite::server::Setup;

use super::{HELD, STUDIO};

/// The program of a user who watches the graph of a run.
const PROGRAM: &str = "studio-graph.js";

/// A graph whose first node runs a subgraph several times at once.
const ERRANDS: &str = r#"
[graphs.errands]
doc = "Runs errands side by side"
entry = "spread"
[graphs.errands.channels.groups]
doc = "What is sent to which node"
[graphs.errands.channels.number]
schema = { type = "integer" }
default = 0
[graphs.errands.channels.body]
reducer = "any"
[graphs.errands.nodes.spread]
goto = ["errand"]
[graphs.errands.nodes.errand]
graph = "errand"
[graphs.errands.nodes.counter]
[[graphs.errands.branches]]
name = "which"
from = "errand"
cases = [{ when = "state.number > 100", to = "END" }, { to = "counter" }]
[graphs.errand]
entry = "call_then_wait"
[graphs.errand.channels.route]
[graphs.errand.channels.text]
[graphs.errand.channels.url]
[graphs.errand.channels.body]
[graphs.errand.nodes.call_then_wait]
"#;

/// Returns the graphs with a node more in each.
fn newer_errands() -> String {
    let condition = ERRANDS.replace("number > 100", "number > 10");
    let nested = "[graphs.errand.nodes.spin]\n[[graphs.errand.edges]]\nfrom = \"call_then_wait\"\n\
                  to = \"spin\"\n";
    let outer = "[graphs.errands.nodes.trap]\n[[graphs.errands.edges]]\n\
                 from = \"counter\"\nto = \"trap\"\n";
    [condition.as_str(), nested, outer].concat()
}

#[tokio::test]
async fn the_studio_lights_up_the_graph_of_a_run() {
    need!(clients::studio());
    let server = Setup::misdeeds(ERRANDS).await.start().await;
    let gate = server.standin().gate(Pattern::path(HELD));
    let obey = async |order: &str| match order {
        "arrived" => gate.arrived(2).await.expect("both tasks wait for the service"),
        "open" => gate.open(),
        "rewrite" => {
            server.setup.workspace.add_misdeeds(&newer_errands());
            server.running.reload().await;
        }
        other => panic!("unexpected order `{other}` of the scenario"),
    };
    let held = format!("{}{HELD}", server.standin().base_url);
    let url = server.url(&format!("{STUDIO}?held={held}"));
    need!(browser::with_orders(PROGRAM, "lights_up", &url, obey).await);
}
