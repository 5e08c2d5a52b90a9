//! A store with runs that cannot be recovered.

use serde_json::Value;
use wattle_suite::attack::app;
use wattle_suite::attack::poison::{poisoned, thread};
use wattle_suite::binary;

use super::calm;

/// Runs that cannot be recovered.
const THREADS: usize = 3;

#[tokio::test]
async fn a_thread_that_cannot_be_recovered_is_set_aside_and_can_be_retried() {
    let (prepared, gate) = poisoned(&binary::path(), THREADS).await.unwrap();
    let host = prepared.start(&binary::path()).await.unwrap();
    // The host listens and honest runs complete during and after the recovery.
    calm::all_is_calm(&host.honest).await;
    let thread = thread(0);
    let aside = calm::until(async || {
        let (status, document) = host.get(&format!("/api/v1/threads/{thread}")).await.unwrap();
        assert_eq!(status, 200, "{document}");
        document["set_aside"].is_object().then_some(document["set_aside"].clone())
    })
    .await;
    assert_eq!(aside["failure"]["code"], "unavailable", "{aside}");
    let (_, health) = host.get("/api/v1/health").await.unwrap();
    let recovery = calm::until(async || {
        let (_, health) = host.get("/api/v1/health").await.unwrap();
        (health["recovery"]["set_aside"] == THREADS).then_some(health["recovery"].clone())
    })
    .await;
    assert_eq!((&recovery["over"], &recovery["recovered"]), (&true.into(), &0.into()), "{health}");
    let (_, ready) = host.get("/readyz").await.unwrap();
    assert_eq!((&ready["status"], &ready["recovery"]), (&"ready".into(), &recovery), "{ready}");

    let show = async || binary::run(&host.workspace, &["thread", "show", &thread]).await;
    let shown = show().await;
    assert_eq!(shown.code, 0, "{shown:?}");
    for words in ["aside    since", "because  unavailable", "wattle thread retry"] {
        assert!(shown.stdout.contains(words), "{shown:?}");
    }
    let retry = async || binary::run(&host.workspace, &["thread", "retry", &thread]).await;
    let refused = retry().await;
    assert!(refused.code != 0 && refused.stderr.contains("is not loaded"), "{refused:?}");

    // The host reloads the old version of the app on its own.
    app::put_app(&host.workspace);
    gate.open();
    let retried = calm::until(async || {
        let retried = retry().await;
        (retried.code == 0).then_some(retried)
    })
    .await;
    assert!(retried.stderr.contains("completed"), "{retried:?}");
    let shown = show().await;
    assert!(shown.stdout.contains("status   idle"), "{shown:?}");
    assert!(!shown.stdout.contains("aside"), "{shown:?}");
    let (_, document): (u16, Value) = host.get(&format!("/api/v1/threads/{thread}")).await.unwrap();
    assert_eq!(document["status"], "idle", "{document}");
    calm::all_is_calm(&host.honest).await;
    host.terminate().await.unwrap();
}
