//! What must hold during and after every attack.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use wattle_suite::attack::honest::{Honest, ROUNDS};
use wattle_suite::attack::host::{Host, MOST_RSS_BYTES};
use wattle_suite::attack::{Attack, case};
use wattle_suite::binary;
use wattle_suite::server::{Setup, TestServer};

/// Maximum duration of a response or of a stop. A successful attack would delay them without end;
/// the tests do not measure speed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Interval between two polls.
const PAUSE: Duration = Duration::from_millis(100);

/// The graph of honest callers.
pub(super) const HONEST: &str = r#"
[graphs.honest]
entry = "counter"
[graphs.honest.channels.number]
schema = { type = "integer" }
[graphs.honest.nodes.counter]
"#;

/// Starts a server with an app of the misdeeds guest that has these graphs and that of honest
/// callers.
pub(super) async fn start(graphs: &str) -> TestServer {
    Setup::misdeeds(&format!("{graphs}{HONEST}")).await.start().await
}

/// Returns an honest caller of the server.
fn honest(server: &TestServer) -> Honest {
    Honest::new(server.running.url()).unwrap()
}

/// Runs an honest run, which must complete.
pub(super) async fn honest_run(server: &TestServer) {
    let honest = honest(server);
    let run = timeout(PATIENCE, honest.run()).await;
    run.expect("an honest run is over in time").expect("an honest run completes");
}

/// Checks that the host responds, honest runs complete, and the control plane works.
pub(super) async fn all_is_calm(honest: &Honest) {
    let all = async {
        honest.ok().await?;
        honest.run().await?;
        honest.control_plane().await
    };
    timeout(PATIENCE, all).await.expect("the host responds in time").expect("all is calm");
}

/// Checks that the peak memory of the host is within its bound, on systems that report it.
pub(super) fn has_stayed_small(host: &Host) {
    let peak = host.peak_rss_bytes().expect("the host runs");
    let is_small = peak.is_none_or(|peak| peak <= MOST_RSS_BYTES);
    assert!(is_small, "the host took {peak:?} bytes, more than {MOST_RSS_BYTES}");
}

/// Polls until there is a result.
pub(super) async fn until<T>(look: impl AsyncFn() -> Option<T>) -> T {
    let looks = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    timeout(PATIENCE, looks).await.expect("a result in time")
}

/// Runs a graph that must fail at a limit, and an honest run at the same time. Returns the failure.
pub(super) async fn fails_at(server: &TestServer, graph: &str, input: Value, limit: &str) -> Value {
    let run = timeout(PATIENCE, server.run("misdeeds", graph, input));
    let (run, ()) = tokio::join!(run, honest_run(server));
    let run = run.expect("the run ends");
    assert_eq!(run["status"], "failed", "{run}");
    let failure = run["failure"].clone();
    assert_eq!((&failure["code"], &failure["details"]["limit"]), (&json!("limit"), &json!(limit)));
    failure
}

/// Checks that all is calm and that the host stops.
pub(super) async fn check(server: TestServer) {
    all_is_calm(&honest(&server)).await;
    timeout(PATIENCE, server.running.shutdown()).await.expect("the host stops");
}

/// Repeats the work of an honest caller until a strike has passed meanwhile. The work goes on; see
/// [`Honest::goes_on`].
async fn honest_load(honest: &Honest, attack: &mut Attack) {
    let has_struck = Cell::new(false);
    let calm = async {
        loop {
            let goes_on = timeout(PATIENCE * ROUNDS, honest.goes_on()).await;
            goes_on.expect("honest work goes on in time").expect("honest work goes on");
            if has_struck.get() {
                break;
            }
        }
    };
    let strike = async {
        let struck = timeout(PATIENCE, attack.struck(1)).await;
        struck.expect("a strike ends in time").expect("the limit holds");
        has_struck.set(true);
    };
    tokio::join!(calm, strike);
}

/// Checks that a host in a separate process withstands an attack that continues until the host has
/// ended: the limit of the case holds, honest work goes on until a strike has passed, the memory of
/// the host stays within its bound, and the host exits after SIGTERM.
pub(super) async fn withstand(name: &str) {
    let case = case(name).expect("an attack of this name");
    let host = Arc::new(case.start_host(&binary::path()).await.expect("the host starts"));
    all_is_calm(&host.honest).await;
    let mut attack = Attack::begin(case, &host, case.lanes);
    honest_load(&host.honest, &mut attack).await;
    has_stayed_small(&host);
    attack.host_stops();
    let ended = host.terminate().await;
    // The failure of an earlier strike is more informative.
    attack.end().await.expect("the limit holds");
    ended.expect("the host ends by itself");
}
