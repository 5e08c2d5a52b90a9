//! Snapshots of complete requests as providers receive them. A change of a word, a schema or a tool
//! appears here.

use serde_json::Value;
use wattle_kit::standin::{Entry, Fault, FaultRule};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{CHAT_MODEL, OSAKA, Talk, working_on};

/// The tasks of a guide.
const TASKS: [&str; 4] = [
    "json_compilation_strict",
    "spot_query_normalization",
    "handbook_image_query_planning",
    "handbook_html_generation",
];

/// The path where the host serves pictures.
const BLOBS: &str = "/blobs/~/";

/// Returns replacements for values that differ between runs: the session, the blocks and the
/// address of services.
fn names(server: &TestServer, session: &str, said: &Talk) -> Vec<(String, String)> {
    let built = said.output("build_travel_blocks");
    let blocks = built["blocks"].as_array().unwrap().iter().zip(1..);
    let named = |(block, number): (&Value, u32)| {
        (block["block_id"].as_str().unwrap().to_owned(), format!("<block {number}>"))
    };
    let services = server.standin().base_url.clone();
    let others = [(session, "<session>"), (&services, "<services>")];
    let others = others.map(|(from, to)| (from.to_owned(), to.to_owned()));
    blocks.map(named).chain(others).collect()
}

/// Returns the body of a request with texts as lines.
fn shown(entry: &Entry, names: &[(String, String)]) -> String {
    let body = serde_json::to_string_pretty(entry.body.as_ref().unwrap()).unwrap();
    let text = names.iter().fold(body, |text, (from, to)| text.replace(from, to));
    let text = without_signatures(&text);
    format!("POST {}\n\n{}", entry.path, text.replace("\\n", "\n    "))
}

/// Replaces the signatures in the addresses of generated pictures, which depend on a key of the
/// server.
fn without_signatures(text: &str) -> String {
    let mut pieces = text.split(BLOBS);
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |shown, piece| {
        let rest = piece.find(['\\', '"']).map_or("", |end| &piece[end..]);
        format!("{shown}{BLOBS}<picture>{rest}")
    })
}

async fn guide() -> (TestServer, String, Talk) {
    let server = Setup::travel().await.start().await;
    let (session, said) = server.travel().make(OSAKA).await;
    assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
    (server, session, said)
}

#[tokio::test]
async fn s3_10_requests_of_the_conversation_match_their_snapshots() {
    let (server, session, said) = guide().await;
    let names = names(&server, &session, &said);
    let asked = server.requests_on(CHAT_MODEL);
    insta::assert_snapshot!("travel_first_turn", shown(&asked[0], &names));
    server.travel().chat(&session, "thank you").await;
    let last = server.requests_on(CHAT_MODEL).pop().unwrap();
    let body = last.body.as_ref().unwrap();
    let system: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "system")
        .collect();
    assert_eq!(system.len(), 2, "the instructions and the state of the session");
    insta::assert_snapshot!("travel_progress", system[1]["content"].as_str().unwrap());
}

#[tokio::test]
async fn s3_45_requests_of_each_task_match_their_snapshots() {
    let (server, session, said) = guide().await;
    let names = names(&server, &session, &said);
    for task in TASKS {
        let asked = server.requests_for(task);
        assert_eq!(asked.len(), 1, "{task}");
        let request = shown(&asked[0], &names);
        assert!(!request.contains(task), "the request does not name the route");
        insta::assert_snapshot!(format!("travel_{task}"), request);
    }
}

#[tokio::test]
async fn s3_46_a_rejected_completion_is_sent_back_with_the_reasons() {
    let server = Setup::travel().await.start().await;
    let wrong = Fault::Content { text: "{\"blocks\": [], \"spot_blocks\": []}".to_owned() };
    server.standin().fault(FaultRule::new(working_on(TASKS[0]), wrong).times(1));
    server.travel().make(OSAKA).await;
    let asked = server.requests_for(TASKS[0]);
    let (first, second) = (user(&asked[0]), user(&asked[1]));
    let complaint = second.strip_prefix(first.as_str()).expect("the request is repeated");
    insta::assert_snapshot!("travel_refused", complaint.trim());
}

/// Returns the text of the user in a request to a Google model.
fn user(entry: &Entry) -> String {
    let body = entry.body.as_ref().unwrap();
    body["contents"][0]["parts"][0]["text"].as_str().unwrap().to_owned()
}
