//! Guests of other toolchains, built for WASI and run in an empty WASI context.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::event::EventKind;
use wattle_graph::id::PluginName;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::RunOutcome;
use wattle_run::ports::Sandbox as _;
use wattle_sandbox::{SandboxConfig, WasmSandbox};
use wattle_suite::guests;
use wattle_suite::scripted::NoSql;
use wattle_suite::world::{START_MS, World};

const EXPLORE: &str = r#"
[graphs.explore]
entry = "explore"
[graphs.explore.channels.reached]
[graphs.explore.channels.seconds]
[graphs.explore.nodes.explore]
plugin = "p"
"#;

#[tokio::test]
async fn a_wasi_guest_gets_an_empty_context_and_its_output_is_logged() {
    let sandbox = WasmSandbox::new(&SandboxConfig::default()).unwrap();
    let name = PluginName::new("p").unwrap();
    let plugin = sandbox.load(&name, guests::bytes("wattle-guest-foreign")).await.unwrap();
    let imports = &plugin.info().imports;
    assert!(imports.iter().any(|import| import.starts_with("wasi:filesystem")), "{imports:?}");
    let world = World::with_plugin(EXPLORE, plugin, Arc::new(NoSql), Grants::default());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["reached"], json!([]));
    assert_eq!(ended.state["seconds"], START_MS / 1_000, "the clock is the host's");
    let events = world.events(&ended.run.thread).await;
    let said = |level: &str| {
        let logs = events.iter().filter_map(|event| match &event.kind {
            EventKind::Log(log) if log.level == level => Some(log.message.as_str()),
            _ => None,
        });
        logs.collect::<Vec<_>>()
    };
    assert_eq!(said("stdout"), ["hello from the standard output"], "blank lines are no messages");
    assert_eq!(said("stderr"), ["hello from the standard error"]);
    let warnings = said("warn");
    assert_eq!(warnings.len(), 1, "the guest tries two sockets: {warnings:?}");
    assert!(warnings[0].contains("has no sockets"), "{warnings:?}");
}
