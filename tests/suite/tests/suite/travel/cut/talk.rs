//! Tests in which the model of the conversation fails in each way at each of its turns.

use wattle_kit::standin::{
    Fault, FaultRule, Pattern, StreamQuirks, StreamVariant, deepseek_not_found,
};
use wattle_suite::server::Setup;
use wattle_suite::travel::CHAT_MODEL;

use super::{CONTINUE, SEARCHED, Stage, guide, status};

/// The model that is called first.
const FIRST: &str = "deepseek-chat";

fn stream(variant: StreamVariant) -> (String, Fault) {
    (format!("{variant:?}"), Fault::Stream(StreamQuirks::of(variant)))
}

/// Failures after which another model is called.
fn passing() -> Vec<(String, Fault)> {
    let mut cases: Vec<_> = [400, 402, 404, 422, 429, 500, 503].map(status).into();
    cases.push(("a model that is gone".to_owned(), deepseek_not_found()));
    cases
}

/// Failures after a part of the completion, or at which another model is not called.
fn lasting() -> Vec<(String, Fault)> {
    let mut cases = vec![status(401)];
    let variants = [
        StreamVariant::InsufficientSystemResource,
        StreamVariant::Cut,
        StreamVariant::ErrorInStream,
    ];
    cases.extend(variants.map(stream));
    cases
}

fn order(stage: &Stage, on: Pattern, fault: Fault, turn: usize) {
    let skip = u32::try_from(turn).unwrap();
    stage.server.standin().fault(FaultRule::new(on, fault).skip(skip));
}

/// Makes the conversation fail in all ways, each after one more tool until all tools are finished,
/// and then at once.
async fn after_each_tool(cases: Vec<(String, Fault)>) {
    let stage = Stage::new(SEARCHED).await;
    let tools = stage.whole.steps.len();
    stage.clear();
    let session = stage.server.travel().create().await;
    for (number, (case, fault)) in cases.into_iter().enumerate() {
        let text = if number == 0 { stage.wish } else { CONTINUE };
        order(&stage, Pattern::path(CHAT_MODEL), fault, usize::from(number < tools));
        let shown = stage.fail(&session, text, None, &case).await;
        let done = shown["steps"].as_array().unwrap().len();
        assert_eq!(done, (number + 1).min(tools), "{case}: one more step");
        stage.server.standin().clear_faults();
    }
    stage.go_on(&session, "after all of them").await;
}

#[tokio::test]
async fn s3_67_a_failed_conversation_continues_later() {
    after_each_tool(passing()).await;
}

#[tokio::test]
async fn s3_47_an_interrupted_conversation_continues_later() {
    after_each_tool(lasting()).await;
}

#[tokio::test]
async fn s3_67_a_conversation_continues_after_a_timeout() {
    let setup = Setup::travel_with(|config| {
        config.replace("model.routes.chat_orchestration.timeout", "1s");
        config.replace("model.routes.chat_orchestration.retries", 0);
    });
    let stage = Stage::on(setup.await, SEARCHED).await;
    let case = "a silent model";
    stage.clear();
    order(&stage, Pattern::path(CHAT_MODEL), Fault::Hang, 3);
    let session = stage.server.travel().create().await;
    let shown = stage.fail(&session, stage.wish, None, case).await;
    let told = shown["lastError"].as_str().unwrap();
    assert!(told.contains("did not respond within 1s"), "{told}");
    stage.server.standin().clear_faults();
    stage.go_on(&session, case).await;
}

#[tokio::test]
async fn s3_47_the_fallback_model_continues_the_conversation() {
    let stage = Stage::new(SEARCHED).await;
    let gone = ("a model that is gone".to_owned(), deepseek_not_found());
    for (case, fault) in [status(402), status(503), gone] {
        stage.clear();
        order(
            &stage,
            Pattern { model: Some(FIRST.to_owned()), ..Pattern::path(CHAT_MODEL) },
            fault,
            3,
        );
        let (session, said) = stage.server.travel().make(stage.wish).await;
        assert!(said.errors().is_empty(), "{case}: {:?}", said.errors());
        stage.whole.check(&guide(&stage.server, &session).await, &case);
        let asked = stage.server.requests_on(CHAT_MODEL);
        let models = asked.iter().filter_map(|it| it.model.as_deref());
        assert_eq!(models.filter(|it| *it != FIRST).count(), 4, "{case}: turns of the fallback");
    }
}
