//! Calls of tools, which a replay does not execute.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::tool::ToolRequest;
use wattle_run::grant::Grants;
use wattle_run::ports::Plugin;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

use super::{exported, replayed};

const ONE: &str = r#"
[graphs.main]
entry = "say"
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes.say]
plugin = "p"
"#;

#[tokio::test]
async fn tools_whose_calls_are_not_compared_are_named() {
    let caller = NativePlugin::new("p", "1").node("say", |_, gate| async move {
        for tool in ["h/idle", "h/draw", "h/draw"] {
            let request = ToolRequest {
                tool: tool.to_owned(),
                call_id: String::new(),
                arguments: json!({}),
                timeout_ms: None,
                state: None,
            };
            gate.call_tool(request).await?;
        }
        Ok(json!({ "out": "said" }))
    });
    let helper = NativePlugin::new("h", "1")
        .tool("idle", |_, _| async move { Ok(json!("done")) })
        .tool("draw", |_, gate| async move { Ok(json!(gate.random(4)?)) });
    let (caller, helper): (Arc<dyn Plugin>, Arc<dyn Plugin>) = (Arc::new(caller), Arc::new(helper));
    let may_call = Grants { tools: vec!["h/*".parse().unwrap()], ..Grants::default() };
    let plugins = vec![(caller, may_call), (helper, Grants::default())];
    let world = World::with_plugins(ONE, plugins);
    let ended = world.run(json!({})).await;
    let text = exported(&world.engine, &ended.run.thread).await;
    let replay = replayed(&text, world.engine.catalog().apps().remove(0)).await;
    assert_eq!((replay.divergences, replay.calls), (vec![], 3));
    let skipped = replay.skipped.iter().map(|it| (it.reason.as_str(), it.left_out.calls));
    let reason = "tool `h/draw` is not executed, and its result is in the journal";
    assert_eq!(skipped.collect::<Vec<_>>(), [(reason, 2)]);
}
