//! `wattle eval`: data sets of an app, run by the binary against a server.

use std::process::Command;

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Cases of the greeter: two that end as expected, one that waits, and one of each way to go wrong.
const CASES: &str = r#"
# comments and blank lines are left out

{"name": "greets", "graph": "Greet", "input": {"name": "Ada"}, "answers": [true], "expect": {"/status": "completed", "/state/greeting": "hello Ada", "/state/approved": true}}
{"name": "asks", "input": {"name": "Bob"}, "expect": {"/interrupt/about": {"$matches": "Bob$"}, "/state/approved": {"$absent": true}}}
{"name": "fails-as-expected", "input": {"name": "nobody"}, "expect": {"/status": "failed", "/failure/code": "rude"}}
{"name": "says-something-else", "input": {"name": "Cy"}, "expect": {"/state/greeting": "hello Dee"}}
{"name": "fails", "input": {"name": "nobody"}, "expect": {"/state/greeting": {"$absent": true}}}
{"name": "is-refused", "input": {"nickname": "Eve"}, "expect": {"/state/greeting": "hello Eve"}}
"#;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the binary in the folder of a server.
async fn wattle(fixture: &Fixture, args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(args).current_dir(fixture.folder.path()).env_clear().env("TZ", "UTC");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

async fn greeter(cases: &str) -> Fixture {
    let fixture = Fixture::start("").await;
    let folder = fixture.folder.path().join("plugins/greeter/eval");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("cases.jsonl"), cases).unwrap();
    fixture
}

fn report(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_runs_on_a_thread_of_its_own_that_is_deleted() {
    let fixture = greeter(CASES).await;
    let report = report(&wattle(&fixture, &["eval", "greeter", "--json"]).await);
    let summary = &report["summary"];
    assert_eq!((&summary["count"], &summary["passed"]), (&json!(6), &json!(3)));
    assert_eq!(
        summary["statuses"],
        json!({ "completed": 1, "failed": 2, "interrupted": 2, "refused": 1 })
    );
    let runs = report["runs"].as_array().unwrap();
    let passed: Vec<bool> = runs.iter().map(|run| run["passed"] == true).collect();
    assert_eq!(passed, [true, true, true, false, false, false]);
    let wrong = json!({ "pointer": "/state/greeting", "passed": false, "expected": "hello Dee",
        "got": "hello Cy" });
    assert_eq!(runs[3]["checks"], json!([wrong]));
    assert_eq!(runs[4]["failure"]["code"], "rude", "a failure that nobody expects is wrong");
    assert!(runs[5]["failure"]["message"].as_str().unwrap().contains("nickname"), "{}", runs[5]);
    let field = &report["fields"]["/state/greeting"];
    assert_eq!((&field["count"], &field["passed"]), (&json!(4), &json!(2)));
    assert_eq!(fixture.get("/api/v1/threads").await.1["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_are_chosen_repeated_and_kept() {
    let fixture = greeter(CASES).await;
    let args = ["eval", "greeter", "--json", "--only", "asks", "--only", "greets", "--repeat", "3"];
    let args = [&args[..], &["--concurrency", "2", "--keep"]].concat();
    let report = report(&wattle(&fixture, &args).await);
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
    assert_eq!(names, ["greets", "greets", "greets", "asks", "asks", "asks"]);
    let thread = runs[5]["thread"].as_str().unwrap();
    let (status, kept) = fixture.get(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!((status, &kept["metadata"]["eval"]), (200, &json!("asks")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_share_decides_about_the_exit_code() {
    let fixture = greeter(CASES).await;
    let half = wattle(&fixture, &["eval", "greeter", "--require", "0.5"]).await;
    assert_eq!(half.code, Some(0), "{}", half.stderr);
    assert!(
        half.stdout.contains("runs that ended as expected  3      6   50.0 %"),
        "{}",
        half.stdout
    );
    let more = wattle(&fixture, &["eval", "greeter", "--require", "0.51"]).await;
    assert_eq!(more.code, Some(1), "{}", more.stderr);
    assert!(more.stderr.contains("fewer than the required 51.0 %"), "{}", more.stderr);
    let wrong = wattle(&fixture, &["eval", "greeter", "--require", "90"]).await;
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_named() {
    let fixture = greeter(CASES).await;
    let check = async |args: &[&str], code: i32, text: &str| {
        let ended = wattle(&fixture, args).await;
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
    };
    check(&["eval", "nobody"], 4, "there is no app `nobody`").await;
    check(&["eval", "greeter", "--only", "x"], 4, "the cases are greets, asks").await;
    check(&["eval", "greeter", "--cases", "x.jsonl"], 1, "cannot read `x.jsonl`").await;
    let wrong = "{\"name\": \"a\", \"input\": {}, \"expect\": {\"/greeting\": 1}}\n{\"nome\": 1}\n";
    std::fs::write(fixture.folder.path().join("wrong.jsonl"), wrong).unwrap();
    let args = ["eval", "greeter", "--cases", "wrong.jsonl"];
    check(&args, 2, "`wrong.jsonl` line 1: `/greeting` points to nothing that a run has").await;
    check(&args, 2, "`wrong.jsonl` line 2: unknown field `nome`").await;
    std::fs::remove_dir_all(fixture.folder.path().join("plugins/greeter/eval")).unwrap();
    check(&["eval", "greeter"], 4, "has no data set `eval/cases.jsonl`").await;
}
