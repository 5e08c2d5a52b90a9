//! Images in results of MCP servers.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::{BlobRef, Digest};
use wattle_graph::llm::{Image, ImageSource, Part};
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_run::caps::Caps;
use wattle_run::hostcall::blob::StatBlob;
use wattle_run::ports::sandbox::{ToolHints, ToolInfo};
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{Caller, ToolServers};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;

const BYTES: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn blob() -> BlobRef {
    BlobRef(Digest::of(BYTES))
}

fn note() -> String {
    format!("[image/png 12 bytes, {}]", blob())
}

/// An MCP server whose tool returns an image.
struct Album;

#[async_trait]
impl ToolServers for Album {
    fn has_server(&self, server: &str) -> bool {
        server == "far"
    }

    async fn list(&self, _: &Caller, _: &str) -> Result<Vec<ToolInfo>, Failure> {
        Ok(vec![ToolInfo {
            name: "show".into(),
            description: String::new(),
            arguments_schema: json!({}),
            accepts_invalid: false,
            hints: ToolHints { read_only: true, idempotent: false },
            reference: None,
            unavailable: None,
        }])
    }

    async fn call(
        &self,
        _: &Caller,
        _: &str,
        _: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        let source = ImageSource::Url(format!("data:image/png;base64,{}", STANDARD.encode(BYTES)));
        let image = Image { source, media_type: "image/png".to_owned() };
        Ok(ServerCallResult::Returned(ToolOutput {
            content: vec![Part::Text(note()), Part::Image(image)],
            structured: Some(json!({ "shot": [note()] })),
            ..ToolOutput::default()
        }))
    }
}

/// Returns a plugin whose node calls the tool and writes the text, the structured output and the
/// size of the blob.
fn looking() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let request = ToolRequest {
            tool: "show".into(),
            call_id: String::new(),
            arguments: json!({}),
            timeout_ms: None,
            state: None,
        };
        let output = gate.call_tools(vec![Ok(request)]).await?.remove(0)?;
        let size = gate.call(StatBlob { blob: blob() }).await.ok().map(|info| info.size);
        Ok(json!({ "out": [output.text(), output.structured, size] }))
    })
}

async fn seen(caps: Caps) -> Value {
    let mut world = World::with_tools(ONE, vec![looking()], Arc::new(Album));
    world.cap(caps);
    world.run(json!({})).await.state["out"].clone()
}

#[tokio::test]
async fn image_of_a_result_is_stored_as_the_blob_that_its_note_names() {
    let out = seen(Caps::default()).await;
    assert_eq!(out, json!([note(), { "shot": [note()] }, BYTES.len()]));
}

#[tokio::test]
async fn image_above_a_cap_is_left_out_of_the_result() {
    let out = seen(Caps { thread_blobs: 0, ..Caps::default() }).await;
    let note = "[image/png 12 bytes, left out]";
    assert_eq!(out, json!([note, { "shot": [note] }, null]));
}
