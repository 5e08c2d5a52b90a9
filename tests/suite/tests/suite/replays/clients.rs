//! Tests of messages in the formats that clients of the Agent Server send: what the provider
//! receives, and what the server returns.
//!
//! The result document of a case is the last response. `refused` is a part of the reason for which
//! a message is rejected; there is one for each message that must be rejected.

use futures::future::join_all;
use serde_json::{Value, json};
use wattle_kit::replay::{Case, Replays};
use wattle_suite::answer::Answer;
use wattle_suite::server::TestServer;

use super::{fits, judge, read, serve, turns};

const AREA: &str = "clients";

#[tokio::test]
async fn messages_of_clients() {
    let cases = read(AREA);
    let replays = Replays::start(&cases).await.unwrap();
    let server = serve(&cases, "openai", "gpt-5", &replays).await;
    let answers = join_all(cases.iter().map(|case| talk(&server, case))).await;
    let found = cases.iter().zip(&answers).map(|(case, answers)| (case, problems(case, answers)));
    judge(AREA, &found.collect::<Vec<_>>(), Some(&replays));
}

/// Runs the conversation on one thread and returns all responses.
async fn talk(server: &TestServer, case: &Case) -> Vec<Answer> {
    let thread = server.post("/threads", &json!({ "metadata": {} })).await.expect(200);
    let path = format!("/threads/{}/runs/wait", thread["thread_id"].as_str().unwrap());
    let mut answers = Vec::new();
    for messages in turns(case) {
        let run = json!({ "assistant_id": case.name, "input": { "messages": messages } });
        answers.push(server.post(&path, &run).await);
    }
    answers
}

fn problems(case: &Case, answers: &[Answer]) -> Vec<String> {
    let last = answers.last().map(|answer| answer.body.clone()).unwrap_or_default();
    let mut refused = answers.iter().filter(|answer| answer.status != 200);
    let mut problems = case.unmet(&last);
    for (key, wanted) in case.expected() {
        let (found, is_right) = match key.as_str() {
            "text" => {
                let words = last_words(&last);
                (words.clone(), fits(wanted, &words))
            }
            "refused" => {
                let why = refused.next().map(reason).unwrap_or_default();
                (why.clone(), why.contains(wanted.as_str()))
            }
            _ => (String::new(), false),
        };
        if !is_right {
            problems.push(format!("{key} is `{found}` instead of `{wanted}`"));
        }
    }
    problems.extend(refused.map(|answer| format!("a message is rejected: {}", reason(answer))));
    if answers.iter().any(|answer| answer.body.get("__error__").is_some()) {
        problems.push("a run failed".to_owned());
    }
    if !problems.is_empty() {
        problems.extend(answers.iter().map(|answer| answer.body.to_string()));
    }
    problems
}

/// Returns the status and the detail of a rejected message.
fn reason(refused: &Answer) -> String {
    format!("{} {}", refused.status, refused.body["detail"].as_str().unwrap_or_default())
}

fn last_words(answer: &Value) -> String {
    let messages = answer["messages"].as_array();
    let words = messages.and_then(|messages| messages.last()?["content"].as_str());
    words.unwrap_or_default().to_owned()
}
