//! The studio: a thread for each of its views. A run that failed and its fork, an interrupt, a call
//! in doubt, a thread on an older version, a cron and a webhook that cannot be delivered.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::host::Host;
use crate::say;
use crate::tour::{self, APPROVED_TOOL, EFFECT_TOOL, TOOLS_PATH};

/// The path of model requests at the stand-ins.
const MODEL_PATH: &str = "/v1/chat/completions";

/// Starts runs of the app.
const RUNS: &str = "/api/v1/apps/tour/runs";

/// The message of the run that fails.
const FAILS: &str = "Announce the sale, then count the visitors";

/// The message of the run that needs approval.
const ASKS: &str = "Repeat that the shop closes at noon";

/// The message of the run on the older version.
const GREETS: &str = "Greet the first guest";

/// The message of the run whose effect is cut by the end of the host.
const CUT: &str = "Announce the new menu";

/// The message of the run with a webhook.
const TELLS: &str = "Tell the office when this is over";

/// The message of the runs of the cron.
const WEEKLY: &str = "Write the weekly report";

/// Thread of the run that fails.
const FAILED_THREAD: &str = "studio-failed";

/// The copy of this thread in which the model call has another result.
const TWIN_THREAD: &str = "studio-twin";

/// Thread of the run on the older version.
const OLDER_THREAD: &str = "studio-older-version";

/// Thread of the call in doubt.
const CUT_THREAD: &str = "studio-in-doubt";

/// Pause between two looks at the requests that the stand-ins have received.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of these looks. A debug build calls a tool within seconds.
const LOOKS: usize = 600;

/// A view of the studio.
pub(crate) struct View {
    /// What it shows.
    pub(crate) what: &'static str,
    /// Its path below the address of the host.
    pub(crate) path: String,
}

/// The ids in the addresses of the views.
#[derive(Default)]
struct Ids {
    /// The run that failed.
    failed: String,
    /// The run of its fork.
    twin: String,
    /// The older version of the app.
    older: String,
    /// The newer version of the app.
    newer: String,
    /// The run with a call in doubt.
    cut: String,
    /// The thread of the run with a webhook.
    webhook: String,
}

/// Prepares the threads. Kills the host and starts it again, with a newer version of the app.
pub(crate) async fn show(host: &mut Host) -> Result<Vec<View>> {
    let failed = failed(host).await?;
    let twin = twin(host).await?;
    asks(host).await?;
    let older = older(host).await?;
    let cut = in_doubt(host).await?;
    let webhook = webhook(host).await?;
    let cron = cron(host).await?;
    let newer = host.get("/api/v1/apps/tour/graphs/tour").await?;
    let newer = text(&newer["version"])?.to_owned();
    say(&format!("six threads of the app `tour`; the cron {cron} starts another one each Monday"));
    Ok(views(&Ids { failed, twin, older, newer, cut, webhook }))
}

fn views(Ids { failed, twin, older, newer, cut, webhook }: &Ids) -> Vec<View> {
    vec![
        view("a run that failed", run_path(FAILED_THREAD, failed)),
        view(
            "the run and its fork with another answer of the model",
            format!("compare?left={FAILED_THREAD}~{failed}&right={TWIN_THREAD}~{twin}"),
        ),
        view("a question in the inbox", "inbox".to_owned()),
        view("a call in doubt, because the host was killed", run_path(CUT_THREAD, cut)),
        view("a thread on an older version", format!("threads/{OLDER_THREAD}")),
        view("its state", format!("threads/{OLDER_THREAD}/checkpoints/latest")),
        view(
            "the older and the newer version of its graph",
            format!("apps/tour/graphs/tour?version={older}&against={newer}"),
        ),
        view("a run whose webhook cannot be delivered", format!("threads/{webhook}")),
        view("the attempts of this webhook", "operations?part=webhooks".to_owned()),
        view("the cron with its next run", "operations?part=crons".to_owned()),
        view("the statistics of the host", "operations".to_owned()),
        view("the runs of all threads", "runs".to_owned()),
        view("the playground of the app `tour`", "apps/tour/play".to_owned()),
        view("the plugins", "plugins".to_owned()),
        view("the model routes", "models".to_owned()),
    ]
}

fn view(what: &'static str, path: String) -> View {
    View { what, path: format!("/studio/{path}") }
}

/// Returns the path of a run below the studio.
fn run_path(thread: &str, run: &str) -> String {
    format!("threads/{thread}/runs/{run}")
}

/// Makes a run that fails at its second model call, and returns its id.
async fn failed(host: &Host) -> Result<String> {
    script(host, FAILS, &json!([calls(EFFECT_TOOL, &json!({}))])).await?;
    let body = json!({ "error": { "message": "the model cannot count visitors" } });
    let fault = json!({ "kind": "status", "status": 400, "body": body });
    let rule = json!({ "path": MODEL_PATH, "body_contains": FAILS, "fault": fault });
    host.order("/__faults", &rule).await?;
    let run = start(host, FAILED_THREAD, FAILS).await?;
    ended(&run, "failed")
}

/// Forks the failed run at the model call that failed, with a result in its place. Returns the id
/// of the run in the copy.
async fn twin(host: &Host) -> Result<String> {
    let log = host.get(&format!("/api/v1/threads/{FAILED_THREAD}/log?types=called")).await?;
    let mut called = log["items"].as_array().into_iter().flatten();
    let failed = called.rfind(|event| event["result"]["Err"].is_object());
    let call = failed.with_context(|| format!("no call failed: {log}"))?;
    let answer = json!({
        "parts": [{ "text": "The sale is announced. Forty visitors came." }],
        "finish_reason": "stop",
        "usage": {},
        "model": "demo",
    });
    let call = json!({ "seq": call["seq"], "answer": answer });
    let fork = json!({ "call": call, "copy": true, "thread_id": TWIN_THREAD, "wait": true });
    let run = host.post(&format!("/api/v1/threads/{FAILED_THREAD}/fork"), &fork).await?;
    ended(&run, "completed")
}

/// Makes a run that waits for approval of a tool call.
async fn asks(host: &Host) -> Result<()> {
    let arguments = json!({ "text": "The shop closes at noon." });
    let contents = json!([calls(APPROVED_TOOL, &arguments), "I have said it."]);
    script(host, ASKS, &contents).await?;
    ended(&start(host, "studio-inbox", ASKS).await?, "interrupted")?;
    Ok(())
}

/// Makes a thread that is pinned to the version of the app that is loaded now. Returns the version.
async fn older(host: &Host) -> Result<String> {
    script(host, GREETS, &json!(["Welcome!"])).await?;
    ended(&start(host, OLDER_THREAD, GREETS).await?, "completed")?;
    let thread = host.get(&format!("/api/v1/threads/{OLDER_THREAD}")).await?;
    Ok(text(&thread["version"])?.to_owned())
}

/// Kills the host while a tool that has an effect is called, and starts it with a newer version of
/// the app. Returns the id of the run, which then asks how to settle the call.
async fn in_doubt(host: &mut Host) -> Result<String> {
    let contents = json!([calls(EFFECT_TOOL, &json!({})), "The menu is announced."]);
    script(host, CUT, &contents).await?;
    let fault = json!({ "kind": "hang_after" });
    let rule =
        json!({ "path": TOOLS_PATH, "body_contains": EFFECT_TOOL, "times": 1, "fault": fault });
    host.order("/__faults", &rule).await?;
    let run = host.post(RUNS, &message(CUT_THREAD, CUT)).await?;
    held(host).await?;
    tour::write_newer(host.folder()?)?;
    say("the host is killed in the middle of a call, and started again");
    host.kill_and_restart().await?;
    host.order("/__release", &json!({})).await?;
    let run = host.get(&format!("/api/v1/runs/{}/wait", text(&run["run"])?)).await?;
    ended(&run, "interrupted")
}

/// Waits until the stand-ins hold back the response to a call of the tool.
async fn held(host: &Host) -> Result<()> {
    for _ in 0..LOOKS {
        let journal = host.journal().await?;
        let mut requests = journal.as_array().into_iter().flatten();
        if requests.any(|it| it["path"] == TOOLS_PATH && it["fault"] == "hang_after") {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    bail!("the tool `{EFFECT_TOOL}` was not called")
}

/// Makes a run whose webhook is refused, and returns its thread.
async fn webhook(host: &Host) -> Result<String> {
    script(host, TELLS, &json!(["It is over."])).await?;
    let thread = host.post("/threads", &json!({})).await?;
    let thread = text(&thread["thread_id"])?;
    let hook = format!("{}/status/503", host.standins);
    let run = json!({ "assistant_id": "tour", "input": input(TELLS), "webhook": hook });
    host.post(&format!("/threads/{thread}/runs/wait"), &run).await?;
    Ok(thread.to_owned())
}

/// Makes a cron, and returns its id.
async fn cron(host: &Host) -> Result<String> {
    let cron = json!({ "assistant_id": "tour", "schedule": "0 9 * * 1", "input": input(WEEKLY) });
    let made = host.post("/runs/crons", &cron).await?;
    Ok(text(&made["cron_id"])?.to_owned())
}

/// Runs the graph on a new thread until the run ends or waits.
async fn start(host: &Host, thread: &str, said: &str) -> Result<Value> {
    let mut start = message(thread, said);
    start["wait"] = json!(true);
    host.post(RUNS, &start).await
}

/// Returns the request of a run on a thread with a message of a user.
fn message(thread: &str, said: &str) -> Value {
    json!({ "input": input(said), "thread_id": thread })
}

fn input(said: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": said }] })
}

/// Returns a completion of a model that calls a tool.
fn calls(tool: &str, arguments: &Value) -> Value {
    json!({ "tool_calls": [{ "name": tool, "arguments": arguments }] })
}

/// Tells the stand-in of the model what to say in the conversation with this message.
async fn script(host: &Host, said: &str, contents: &Value) -> Result<()> {
    let fault = json!({ "kind": "script", "contents": contents });
    let rule = json!({ "path": MODEL_PATH, "body_contains": said, "fault": fault });
    host.order("/__faults", &rule).await
}

/// Returns the id of a run that has ended with this status.
fn ended(run: &Value, status: &str) -> Result<String> {
    ensure!(run["status"] == status, "the run is not {status}: {run}");
    Ok(text(&run["run"])?.to_owned())
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("no text: {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_of_the_studio_has_a_link() {
        let features = crate::root().join("host/studio/src/router/features.ts");
        let features = std::fs::read_to_string(features).unwrap();
        let paths = features.split("path: \"").skip(1).filter_map(|rest| rest.split('"').next());
        // The other paths have parameters.
        let pages: Vec<&str> = paths.filter(|path| !path.contains('$')).collect();
        assert!(pages.contains(&"/operations"), "{pages:?}");
        let views = views(&Ids::default());
        for page in pages {
            let has_link = views.iter().any(|it| it.path.starts_with(&format!("/studio{page}")));
            assert!(has_link, "no link leads to {page}");
        }
    }
}
