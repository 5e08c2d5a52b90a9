//! A host that starts with components that take minutes to compile.

use std::fs;

use serde_json::{Value, json};
use wattle_kit::slow_component::slow_component;
use wattle_suite::attack::app::APP;
use wattle_suite::attack::host::Prepared;
use wattle_suite::binary;

use super::calm;

/// Number of the first component. Those of the attack on a running host have other numbers.
const FIRST: u32 = 1_000;

/// Standalone components. They fill the places of the host for slow components.
const COMPONENTS: u32 = 2;

#[tokio::test]
async fn a_host_with_slow_components_serves_the_other_apps() {
    let prepared = Prepared::new().await.unwrap();
    let workspace = &prepared.workspace;
    let toml = fs::read_to_string(workspace.config()).unwrap();
    let waits = "load_wait = \"10m\"";
    assert!(toml.contains(waits), "{toml}");
    workspace.write("wattle.toml", toml.replace(waits, "load_wait = \"0s\""));
    for number in 0..COMPONENTS {
        workspace.write(&format!("plugins/slow-{number}.wasm"), slow_component(FIRST + number));
    }
    let manifest = "[app]\nname = \"slow\"\nversion = \"1\"\n[components]\nslow = \"slow.wasm\"\n";
    workspace.write("plugins/slow/slow.wasm", slow_component(FIRST + COMPONENTS));
    workspace.write("plugins/slow/app.toml", manifest);

    let host = prepared.start(&binary::path()).await.unwrap();
    let get = async |path: &str| -> (u16, Value) { host.get(path).await.unwrap() };
    let (status, ready) = get("/readyz").await;
    assert_eq!(status, 200, "{ready}");
    let apps = ready["loading"]["apps"].as_array().cloned().unwrap_or_default();
    assert!(apps.contains(&json!("slow")), "{ready}");
    let (status, problem) = get("/api/v1/apps/slow").await;
    assert_eq!((status, &problem["details"]["loading"]), (503, &json!(["slow"])), "{problem}");
    calm::until(async || {
        let (status, app) = get(&format!("/api/v1/apps/{APP}")).await;
        assert!(matches!(status, 200 | 503), "{status}: {app}");
        (status == 200).then_some(())
    })
    .await;
    calm::all_is_calm(&host.honest).await;
    calm::has_stayed_small(&host);
    host.terminate().await.unwrap();
}
