//! `wattle eval`: data sets of an app, run by the binary against a server.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::Fixture;
use crate::native_sandbox::SLOW;

/// Cases of the greeter: two that pass, one that stays interrupted, and one for each kind of
/// failure.
const CASES: &str = r#"
# comments and blank lines are left out

{"name": "greets", "graph": "Greet", "input": {"name": "Ada"}, "answers": [true], "expect": {"/status": "completed", "/state/greeting": "hello Ada", "/state/approved": true}}
{"name": "asks", "input": {"name": "Bob"}, "expect": {"/interrupt/about": {"$matches": "Bob$"}, "/state/approved": {"$absent": true}}}
{"name": "fails-as-expected", "input": {"name": "nobody"}, "expect": {"/status": "failed", "/failure/code": "rude"}}
{"name": "says-something-else", "input": {"name": "Cy"}, "expect": {"/state/greeting": "hello Dee"}}
{"name": "fails", "input": {"name": "nobody"}, "expect": {"/state/greeting": {"$absent": true}}}
{"name": "is-refused", "input": {"nickname": "Eve"}, "expect": {"/state/greeting": "hello Eve"}}
"#;

/// Maximum number of checks for a running case, and the pause between two checks.
const LOOKS: u32 = 1_200;
const PAUSE: Duration = Duration::from_millis(25);

/// The exit code and the output of a command.
struct CommandOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let Output { status, stdout, stderr } = output;
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

fn command(fixture: &Fixture, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(args).current_dir(fixture.folder.path()).env_clear().env("TZ", "UTC");
    command
}

/// Runs the binary in the folder of a server.
async fn wattle(fixture: &Fixture, args: &[&str]) -> CommandOutput {
    let mut command = command(fixture, args);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap().into()
}

/// Three cases, of which the second one never ends.
fn slow_cases() -> String {
    let case = |name: &str, input: &str| {
        let input = json!({ "name": input });
        json!({ "name": name, "input": input, "expect": { "/interrupt/about": format!("hello {}", input["name"].as_str().unwrap()) } })
    };
    [case("first", "Ada"), case("endless", SLOW), case("third", "Bob")]
        .map(|case| case.to_string())
        .join("\n")
}

/// Starts the binary with the slow cases. Sends Ctrl-C when the second case runs.
async fn interrupted(fixture: &Fixture, more: &[&str]) -> CommandOutput {
    let args = [&["eval", "greeter", "--json"], more].concat();
    let mut command = tokio::process::Command::from(command(fixture, &args));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().unwrap();
    let is_running = async || {
        let threads = fixture.get("/api/v1/threads?status=running").await.1;
        let items = threads["items"].as_array().cloned().unwrap_or_default();
        items.iter().any(|thread| thread["metadata"]["eval"] == "endless")
    };
    let mut looks = 0;
    while !is_running().await {
        looks += 1;
        assert!(looks < LOOKS, "the case never ran");
        tokio::time::sleep(PAUSE).await;
    }
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    child.wait_with_output().await.unwrap().into()
}

async fn greeter(cases: &str) -> Fixture {
    let fixture = Fixture::start("").await;
    let folder = fixture.folder.path().join("plugins/greeter/eval");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("cases.jsonl"), cases).unwrap();
    fixture
}

fn report(output: &CommandOutput) -> Value {
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
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
    assert_eq!(runs[4]["failure"]["code"], "rude", "an unexpected failure is a failed case");
    assert!(runs[5]["failure"]["message"].as_str().unwrap().contains("nickname"), "{}", runs[5]);
    let field = &report["fields"]["/state/greeting"];
    assert_eq!((&field["count"], &field["passed"]), (&json!(4), &json!(2)));
    assert_eq!(fixture.get("/api/v1/threads").await.1["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn cases_are_selected_repeated_and_kept() {
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
async fn a_required_pass_rate_determines_the_exit_code() {
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
    assert!(more.stderr.contains("below the required 51.0 %"), "{}", more.stderr);
    let wrong = wattle(&fixture, &["eval", "greeter", "--require", "90"]).await;
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_times_out_is_cancelled_and_fails() {
    let fixture = greeter(&slow_cases()).await;
    let report = report(&wattle(&fixture, &["eval", "greeter", "--json", "--timeout", "1s"]).await);
    let summary = &report["summary"];
    assert_eq!((&summary["count"], &summary["passed"]), (&json!(3), &json!(2)), "{report:#}");
    assert_eq!(summary["statuses"], json!({ "cancelled": 1, "interrupted": 2 }));
    let late = &report["runs"][1];
    assert_eq!((&late["name"], &late["failure"]["code"]), (&json!("endless"), &json!("timeout")));
    let message = late["failure"]["message"].as_str().unwrap();
    assert!(message.contains("after 1s; `--timeout` sets the limit"), "{message}");
    assert_eq!(fixture.get("/api/v1/threads").await.1["items"], json!([]));
    for (time, why) in
        [("soon", "is not a duration"), ("0s", "greater than `0s`"), ("2d", "at most `1d`")]
    {
        let wrong = wattle(&fixture, &["eval", "greeter", "--timeout", time]).await;
        assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
        assert!(wrong.stderr.contains(why), "{}", wrong.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_the_running_case_and_shows_what_was_measured() {
    let fixture = greeter(&slow_cases()).await;
    let output = interrupted(&fixture, &[]).await;
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&report["summary"]["count"], &report["unmeasured"]), (&json!(1), &json!(2)));
    assert_eq!(report["runs"][0]["name"], "first");
    assert!(output.stderr.contains("cancelling the running cases"), "{}", output.stderr);
    assert_eq!(fixture.get("/api/v1/threads").await.1["items"], json!([]), "nothing is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_ctrl_c_cancels_can_be_kept() {
    let fixture = greeter(&slow_cases()).await;
    let output = interrupted(&fixture, &["--keep", "--only", "endless"]).await;
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    let threads = fixture.get("/api/v1/threads").await.1;
    let [kept] = threads["items"].as_array().unwrap().as_slice() else { panic!("{threads}") };
    let thread = kept["thread"].as_str().unwrap();
    let (_, runs) = fixture.get(&format!("/api/v1/threads/{thread}/runs")).await;
    assert_eq!(runs[0]["status"], "cancelled", "{runs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_apps_cases_and_files_are_named() {
    let fixture = greeter(CASES).await;
    let check = async |args: &[&str], code: i32, text: &str| {
        let output = wattle(&fixture, args).await;
        assert_eq!(output.code, Some(code), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(text), "{args:?}: {}", output.stderr);
    };
    check(&["eval", "nobody"], 4, "there is no app `nobody`").await;
    check(&["eval", "greeter", "--only", "x"], 4, "the cases are greets, asks").await;
    check(&["eval", "greeter", "--cases", "x.jsonl"], 1, "cannot read `x.jsonl`").await;
    let wrong = "{\"name\": \"a\", \"input\": {}, \"expect\": {\"/greeting\": 1}}\n{\"nome\": 1}\n";
    std::fs::write(fixture.folder.path().join("wrong.jsonl"), wrong).unwrap();
    let args = ["eval", "greeter", "--cases", "wrong.jsonl"];
    check(&args, 2, "`wrong.jsonl` line 1: `/greeting` is not a part of a run").await;
    check(&args, 2, "`wrong.jsonl` line 2: unknown field `nome`").await;
    std::fs::remove_dir_all(fixture.folder.path().join("plugins/greeter/eval")).unwrap();
    check(&["eval", "greeter"], 4, "has no data set `eval/cases.jsonl`").await;
}
