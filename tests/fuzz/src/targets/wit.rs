//! Values that guests return. The first byte selects the export, the rest is the memory from which
//! the guest returns a value. For any memory the host has an outcome within its limits, or a
//! failure.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use wattle_graph::id::{AppName, GraphName, PluginName, RunId, TaskId, ThreadId};
use wattle_graph::plan::TaskInput;
use wattle_run::grant::Grants;
use wattle_run::ports::sandbox::{
    GuestError, NodeCall, Plugin, PluginToolCall, Sandbox as _, WebRequest,
};

use super::component::sandbox;
use crate::{guest, world};

/// Guests with one export each.
struct Guests {
    node: Arc<dyn Plugin>,
    tool: Arc<dyn Plugin>,
    reducer: Arc<dyn Plugin>,
    web: Arc<dyn Plugin>,
}

/// Calls an export.
pub fn run(bytes: &[u8]) {
    static GUESTS: OnceLock<Guests> = OnceLock::new();
    let Some((export, memory)) = bytes.split_first() else { return };
    let guests = GUESTS.get_or_init(|| crate::wait(load()));
    let image = guest::image(memory);
    let ended = match export % 4 {
        0 => crate::wait(guests.node.run_node(node_call(image), world::gate())).map(|outcome| {
            drop(outcome);
        }),
        1 => crate::wait(guests.tool.call_tool(tool_call(image), world::gate())).map(drop),
        2 => reduce(guests, image),
        _ => crate::wait(guests.web.handle(web_request(&image), world::gate())).map(drop),
    };
    match ended {
        Ok(()) => {}
        Err(
            GuestError::Failure(failure) | GuestError::Trap(failure) | GuestError::Limit(failure),
        ) => {
            assert!(!failure.code.is_empty(), "{failure:?}");
            assert!(!failure.code.contains(char::is_control), "{failure:?}");
            assert!(serde_json::to_string(&failure).is_ok());
        }
        Err(other) => panic!("the host failed: {other:?}"),
    }
}

fn reduce(guests: &Guests, image: Value) -> Result<(), GuestError> {
    let grants = Grants::default();
    let app = AppName::new("app").expect("the name is valid");
    let value = crate::wait(guests.reducer.reduce(&app, "r", Some(image), Vec::new(), &grants))?;
    assert!(value.to_string().len() as u64 <= 2 * grants.limits.output_bytes);
    Ok(())
}

async fn load() -> Guests {
    let load = async |world: &'static str| {
        let name = PluginName::new("guest").expect("the name is valid");
        let loaded = sandbox().load(&name, guest::component(world)).await;
        loaded.unwrap_or_else(|error| panic!("{error}"))
    };
    Guests {
        node: load("node").await,
        tool: load("tool").await,
        reducer: load("reducer").await,
        web: load("web").await,
    }
}

fn node_call(input: Value) -> NodeCall {
    NodeCall {
        node: "n".to_owned(),
        graph: GraphName::new("graph").expect("the name is valid"),
        thread: ThreadId::new("thread").expect("the name is valid"),
        run: RunId::new("run").expect("the name is valid"),
        task: TaskId::new("task").expect("the name is valid"),
        step: 0,
        attempt: 1,
        remaining_steps: 10,
        tenant: None,
        context: Arc::default(),
        input: TaskInput::Sent(Arc::new(input)),
        conversation: None,
        config: Arc::default(),
        error: None,
    }
}

fn tool_call(arguments: Value) -> PluginToolCall {
    PluginToolCall {
        tool: "t".to_owned(),
        call_id: "c".to_owned(),
        thread: None,
        task: None,
        tenant: None,
        violations: Vec::new(),
        arguments,
        state: None,
        grants: Arc::default(),
    }
}

fn web_request(body: &Value) -> WebRequest {
    WebRequest {
        method: "GET".to_owned(),
        path: "/".to_owned(),
        route: "/".to_owned(),
        params: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: body.to_string().into(),
        tenant: None,
    }
}
