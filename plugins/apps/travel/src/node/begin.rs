//! `begin`: loads the conversation of the chat page and the snapshot of the session into the state.
//!
//! The snapshot in the database takes precedence over the state of an earlier run, because a person
//! may have edited the guide in between.

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Outcome, Serialize, Value, json, node,
};

use crate::block::Block;
use crate::channel;
use crate::image::plan::ImagePlan;
use crate::image::{ImageAsset, ImageSource};
use crate::message::{UiMessage, for_model};
use crate::session::Snapshot;
use crate::tool::GENERATE_HANDBOOK_HTML;
use crate::video::{Video, VideoContext};

/// The input of a run.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// Messages and snapshot; null in a run that was started without them.
    #[serde(default)]
    request: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    messages: Vec<UiMessage>,
    snapshot: Stored,
}

/// The snapshot as the endpoint passes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stored {
    context: Value,
    blocks: Value,
    spot_blocks: Value,
    tool_outputs: Value,
    handbook_html: Value,
}

/// All channels.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Updates {
    request: Value,
    messages: Vec<Value>,
    videos: Value,
    context: Value,
    blocks: Value,
    spot_blocks: Value,
    images: Value,
    image_mode: Value,
    image_plan: Value,
    html: Value,
    tool_outputs: Value,
}

/// Begins a run: the messages of the page become those of the model, and the results of the session
/// become the state, so that the model continues from there.
#[node]
pub(crate) fn begin(_context: &Context, input: Input) -> Result<Outcome<Updates>, Failure> {
    let request: Request = match input.request {
        Value::Null => Request::default(),
        request => serde_json::from_value(request)?,
    };
    let Stored { context, blocks, spot_blocks, tool_outputs, handbook_html } = request.snapshot;
    let tool_outputs = if tool_outputs.is_object() { tool_outputs } else { json!({}) };
    let finished = Snapshot::finished(&tool_outputs);
    // The tool that makes the page names the source of its images most reliably.
    let of_page = sound::<ImageSource>(&tool_outputs[GENERATE_HANDBOOK_HTML]["image_mode"]);
    let image_mode =
        if of_page.is_null() { sound::<ImageSource>(&context["imageMode"]) } else { of_page };
    let updates = Updates {
        messages: for_model(&request.messages, &finished)?,
        // It is long, and from here on the other channels have its content.
        request: Value::Null,
        videos: sound::<Vec<Video>>(&context["videos"]),
        images: sound::<Vec<ImageAsset>>(&context["images"]),
        image_plan: sound::<ImagePlan>(&context["imagePlan"]),
        context: sound::<VideoContext>(&context["video"]),
        image_mode,
        blocks: sound::<Vec<Block>>(&blocks),
        spot_blocks: sound::<Vec<Block>>(&spot_blocks),
        html: sound::<String>(&handbook_html),
        tool_outputs,
    };
    Ok(Outcome::new(updates).overwrite(channel::MESSAGES).overwrite(channel::TOOL_OUTPUTS))
}

/// Returns a stored value if the tools can read it. Any other value, such as one of an editor or of
/// an earlier version, is treated as absent, so that a session can always continue.
fn sound<T: DeserializeOwned>(value: &Value) -> Value {
    if T::deserialize(value).is_ok() { value.clone() } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, Value, json};
    use wattle_plugin::testing::{FakeHost, run_node};

    use super::begin;

    fn run(request: Value) -> Value {
        let input = json!({ "request": request });
        let decision = FakeHost::new().run(|| run_node::<begin>(&Context::default(), &input));
        let decision = decision.unwrap();
        let overwritten: Vec<&str> = decision
            .updates
            .iter()
            .filter(|update| update.overwrite)
            .map(|update| update.channel.as_str())
            .collect();
        assert_eq!(overwritten, ["messages", "tool_outputs"]);
        decision.updates.into_iter().map(|update| (update.channel, update.value)).collect()
    }

    fn asked() -> Value {
        json!([{"id": "u", "role": "user", "parts": [{"type": "text", "text": "go on"}]}])
    }

    #[test]
    fn s3_09_the_snapshot_becomes_the_state() {
        let outputs = json!({"parse_youtube_input": {"count": 1}, "crawl_youtube_videos": {},
            "search_image": null});
        let block = json!({"block_id": "a", "type": "spot", "title": "t", "description": "d",
            "location": null, "smart_tags": []});
        let picture = json!({"block_id": "a", "block_title": "t", "query": "q", "alt": "a",
            "image_url": "/blobs/x", "source": "imagen"});
        let plan = json!({"model": "m", "pictures": []});
        let snapshot = json!({
            "context": {"video": {"videoId": "v"}, "videos": [{"id": "v"}],
                "images": [picture], "imageMode": "unsplash", "imagePlan": plan},
            "blocks": [block], "spotBlocks": [], "toolOutputs": outputs,
            "handbookHtml": "<html>",
        });
        let state = run(json!({"messages": asked(), "snapshot": snapshot}));
        assert_eq!(state["request"], Value::Null);
        assert_eq!(state["context"], json!({"videoId": "v"}));
        assert_eq!(state["videos"], json!([{"id": "v"}]));
        assert_eq!(state["images"], json!([picture]));
        assert_eq!(state["image_mode"], "unsplash");
        assert_eq!(state["image_plan"]["model"], "m");
        assert_eq!(state["blocks"], json!([block]));
        assert_eq!(state["html"], "<html>");
        assert_eq!(state["tool_outputs"], outputs);
        let said = state["messages"][0]["content"].as_str().unwrap();
        assert!(said.ends_with("Finished steps: parse_youtube_input, crawl_youtube_videos"));
        assert_eq!(state["messages"][1]["content"], "go on");
    }

    #[test]
    fn s3_09_the_page_determines_the_image_mode() {
        let snapshot = json!({"context": {"imageMode": "unsplash"},
            "toolOutputs": {"generate_handbook_html": {"image_mode": "imagen"}}});
        let state = run(json!({"messages": asked(), "snapshot": snapshot}));
        assert_eq!(state["image_mode"], "imagen");
    }

    #[test]
    fn unreadable_snapshot_does_not_stop_a_session() {
        let snapshot = json!({
            "context": {"video": 7, "videos": {}, "images": [7], "imageMode": "x", "imagePlan": []},
            "blocks": [{"block_id": 7}], "spotBlocks": "x", "handbookHtml": 7,
            "toolOutputs": {"generate_handbook_html": {"image_mode": 7}, "search_image": "x"},
        });
        let mut state = run(json!({"messages": asked(), "snapshot": snapshot}));
        assert_eq!(state["tool_outputs"], snapshot["toolOutputs"]);
        let fields = state.as_object_mut().unwrap();
        fields.retain(|key, value| key != "messages" && key != "tool_outputs" && !value.is_null());
        assert!(fields.is_empty(), "{fields:?}");
    }

    #[test]
    fn new_session_has_an_empty_state() {
        for request in [json!(null), json!({"messages": asked(), "snapshot": {}})] {
            let state = run(request);
            assert_eq!((&state["blocks"], &state["tool_outputs"]), (&Value::Null, &json!({})));
        }
        let state = run(json!({"messages": asked(), "snapshot": {}}));
        let said = state["messages"][0]["content"].as_str().unwrap();
        assert!(said.lines().any(|line| line == "Finished steps: none"), "{said}");
    }
}
