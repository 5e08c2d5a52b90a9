//! Tests of guides whose page disconnects between two tools, or that a person stops during a text.

use serde_json::Value;
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::travel::CHAT_MODEL;

use super::{GENERATED, Guide, SEARCHED, Stage};

/// The number of text chunks that are received before the stop.
const HEARD_PIECES: usize = 3;

/// Returns whether a chunk contains a tool result.
fn is_answer(chunk: &Value) -> bool {
    chunk["type"] == "tool-output-available"
}

/// Holds the turn of the conversation that follows this many tools.
fn hold_turn(stage: &Stage, tools: usize) {
    let skip = u32::try_from(tools).unwrap();
    let rule = FaultRule::new(Pattern::path(CHAT_MODEL), Fault::Hang).skip(skip).times(1);
    stage.server.standin().fault(rule);
}

/// Leaves a guide after each of its tools from this number on.
async fn after_each_tool(wish: &'static str, first: impl Fn(&Guide) -> usize) {
    let stage = Stage::new(wish).await;
    let travel = stage.server.travel();
    for tools in first(&stage.whole)..=stage.whole.steps.len() {
        stage.clear();
        let cut = format!("left after {tools} tools");
        hold_turn(&stage, tools);
        let session = travel.create().await;
        let mut stream = travel.stream(&session, stage.wish).await;
        for _ in 0..tools {
            stream.until(is_answer).await.unwrap();
        }
        stage.held().await;
        drop(stream);
        let path = format!("/api/sessions/{session}");
        let shown = stage.server.until(&path, |answer| answer.body["status"] != "RUNNING").await;
        assert_eq!(shown.body["status"], "CANCELLED", "{cut}");
        stage.go_on(&session, &cut).await;
    }
}

#[tokio::test]
async fn s3_66_a_guide_with_photographs_left_after_any_tool_continues() {
    after_each_tool(SEARCHED, |_| 1).await;
}

#[tokio::test]
async fn s3_66_a_guide_with_generated_pictures_left_after_any_tool_continues() {
    after_each_tool(GENERATED, |whole| whole.tools_before_pictures() + 1).await;
}

#[tokio::test]
async fn s3_66_a_guide_stopped_during_any_text_continues() {
    let stage = Stage::new(SEARCHED).await;
    let travel = stage.server.travel();
    let tools = stage.whole.steps.len();
    for turn in [0, tools / 2, tools] {
        stage.clear();
        let cut = format!("stopped in turn {turn}");
        hold_turn(&stage, turn);
        let session = travel.create().await;
        let mut stream = travel.stream(&session, stage.wish).await;
        stage.held().await;
        let gate = stage.server.standin().stream_gate(Pattern::path(CHAT_MODEL));
        stage.server.standin().release();
        gate.release(HEARD_PIECES);
        for _ in 0..=turn {
            stream.until_type("text-start").await;
        }
        stream.until_type("text-delta").await;
        let stopped = travel.cancel(&session).await.expect(200);
        assert_eq!(stopped["status"], "CANCELLED", "{cut}: {stopped}");
        drop(gate);
        stage.go_on(&session, &cut).await;
    }
}
