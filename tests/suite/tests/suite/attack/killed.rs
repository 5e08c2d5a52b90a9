//! A host that is killed in the middle of a superstep of as many tasks as one may have.

use std::time::Duration;

use tokio::time::timeout;
use wattle_suite::attack::killed::{HELD, Killed, TASKS, amid_tasks, held};
use wattle_suite::binary;

use super::calm;

/// Maximum duration of the rest of the superstep. It takes a fraction of that.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::test]
async fn a_superstep_of_thousands_of_tasks_continues_after_a_kill() {
    let Killed { prepared, run, gate } = amid_tasks(&binary::path()).await.unwrap();
    let host = prepared.start(&binary::path()).await.unwrap();
    // The run cannot complete before the gate opens. The host does not wait for it.
    calm::all_is_calm(&host.honest).await;
    held(&gate, 2 * HELD).await.unwrap();
    calm::all_is_calm(&host.honest).await;
    gate.open();
    let path = format!("/api/v1/runs/{run}/wait");
    let ended = timeout(PATIENCE, host.get(&path)).await.expect("the run ends").unwrap();
    let (status, document) = ended;
    assert_eq!((status, &document["status"]), (200, &"completed".into()), "{document}");
    // Each task counts once, whether it finished before the kill or after it.
    assert_eq!(document["state"]["number"], TASKS - HELD, "{document}");
    // The document has no `recovery` once it is complete and no thread is set aside.
    calm::until(async || {
        let (_, health) = host.get("/api/v1/health").await.unwrap();
        health["recovery"].is_null().then_some(())
    })
    .await;
    calm::has_stayed_small(&host);
    host.terminate().await.unwrap();
}
