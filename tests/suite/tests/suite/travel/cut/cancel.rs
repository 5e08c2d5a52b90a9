//! Tests of guides that a person stops during a request or between two requests.

use wattle_kit::standin::{Entry, Outcome};

use super::{GENERATED, Guide, SEARCHED, Stage, body, guide, is_paid, named};

/// Makes a guide for each of these requests of an uninterrupted guide, and stops it there.
async fn at_each_request(wish: &'static str, places: impl Fn(&Guide) -> Vec<usize>) {
    let stage = Stage::new(wish).await;
    let travel = stage.server.travel();
    for number in places(&stage.whole) {
        stage.clear();
        stage.hold(number);
        let session = travel.create().await;
        let stream = travel.stream(&session, stage.wish).await;
        let cut = named(number, &stage.held().await);
        let stopped = travel.cancel(&session).await.expect(200);
        assert_eq!(stopped["status"], "CANCELLED", "{cut}: {stopped}");
        stream.rest().await;
        let is_gone = |it: &Entry| it.fault.is_some() && it.outcome == Outcome::Abandoned;
        stage.server.standin().wait_for_request(is_gone).await.unwrap();
        stage.go_on(&session, &cut).await;
    }
}

#[tokio::test]
async fn s3_09_s3_65_a_guide_stopped_after_any_response_continues() {
    let stage = Stage::new(GENERATED).await;
    let travel = stage.server.travel();
    for answer in stage.whole.requests.iter().filter(|it| is_paid(it)) {
        stage.clear();
        let cut = format!("stopped after an answer of {}", answer.path);
        let session = travel.create().await;
        let stream = travel.stream(&session, stage.wish).await;
        let is_answered = |it: &Entry| body(it) == body(answer) && it.outcome == Outcome::Answered;
        stage.server.standin().wait_for_request(is_answered).await.unwrap();
        let stopped = travel.cancel(&session).await.expect(200);
        // The response may have arrived after the stop.
        let requests = stage.server.standin().requests();
        let last = requests.iter().rfind(|it| is_paid(it)).unwrap();
        stream.rest().await;
        // The run may have completed before the stop.
        let mut made = match stopped["status"].as_str() {
            Some("COMPLETED") => guide(&stage.server, &session).await,
            _ => stage.finish(&session, &cut).await,
        };
        let again = made.requests.iter().rposition(|it| body(it) == body(last)).unwrap();
        if made.requests[again].id != last.id {
            made.requests.remove(again);
        }
        stage.whole.check(&made, &cut);
    }
}

#[tokio::test]
async fn s3_09_s3_65_a_guide_with_photographs_stopped_at_any_request_continues() {
    at_each_request(SEARCHED, Guide::places).await;
}

#[tokio::test]
async fn s3_09_s3_65_a_guide_with_generated_pictures_stopped_at_any_request_continues() {
    at_each_request(GENERATED, Guide::places_of_pictures).await;
}
