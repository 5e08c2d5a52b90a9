//! Runs that failed, were forked or were cut, and a thread on an older version.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::time::sleep;

use super::run::{MODEL_PATH, RUNS, calls, ended, message, script, start, text};
use crate::host::Host;
use crate::say;
use crate::tour::{self, EFFECT_TOOL, GRAPH, TOOLS_PATH};

/// The message of the run that fails.
const FAILS: &str = "Announce the sale, then count the visitors";

/// The message of the run on the older version.
const GREETS: &str = "Greet the first guest";

/// The message of the run that is forked at its input.
const REPEATS: &str = "Greet the second guest";

/// The message of the run whose effect is cut by the end of the host.
const CUT: &str = "Announce the new menu";

/// Thread of the run that fails.
pub(super) const FAILED_THREAD: &str = "studio-failed";

/// The copy of this thread in which the model call has another result.
pub(super) const TWIN_THREAD: &str = "studio-twin";

/// Thread of a run and its fork.
pub(super) const FORKED_THREAD: &str = "studio-forked";

/// Thread of the run on the older version.
pub(super) const OLDER_THREAD: &str = "studio-older-version";

/// Thread of the call in doubt.
pub(super) const CUT_THREAD: &str = "studio-in-doubt";

/// Pause between two looks at the requests that the stand-ins have received.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of these looks. A debug build calls a tool within seconds.
const LOOKS: usize = 600;

/// Makes a run that fails at its second model call, and returns its id.
pub(super) async fn failed(host: &Host) -> Result<String> {
    script(host, FAILS, &json!([calls(EFFECT_TOOL, &json!({}))])).await?;
    let body = json!({ "error": { "message": "the model cannot count visitors" } });
    let fault = json!({ "kind": "status", "status": 400, "body": body });
    let rule = json!({ "path": MODEL_PATH, "body_contains": FAILS, "fault": fault });
    host.order("/__faults", &rule).await?;
    let run = start(host, GRAPH, FAILED_THREAD, FAILS).await?;
    ended(&run, "failed")
}

/// Forks the failed run at the model call that failed, with a result in its place. Returns the id
/// of the run in the copy.
pub(super) async fn twin(host: &Host) -> Result<String> {
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

/// Makes a run, and forks it in place at the checkpoint of its input. The model says something else
/// in the fork. Returns the ids of both runs.
pub(super) async fn forked(host: &Host) -> Result<[String; 2]> {
    script(host, REPEATS, &json!(["Welcome back!", "Good evening!"])).await?;
    let first = ended(&start(host, GRAPH, FORKED_THREAD, REPEATS).await?, "completed")?;
    let history = host.get(&format!("/api/v1/threads/{FORKED_THREAD}/history")).await?;
    let mut checkpoints = history.as_array().into_iter().flatten();
    let input = checkpoints.find(|checkpoint| checkpoint["source"] == "input");
    let input = input.with_context(|| format!("no checkpoint of an input: {history}"))?;
    let fork = json!({ "checkpoint": input["id"], "wait": true });
    let run = host.post(&format!("/api/v1/threads/{FORKED_THREAD}/fork"), &fork).await?;
    Ok([first, ended(&run, "completed")?])
}

/// Makes a thread that is pinned to the version of the app that is loaded now. Returns the version.
pub(super) async fn older(host: &Host) -> Result<String> {
    script(host, GREETS, &json!(["Welcome!"])).await?;
    ended(&start(host, GRAPH, OLDER_THREAD, GREETS).await?, "completed")?;
    let thread = host.get(&format!("/api/v1/threads/{OLDER_THREAD}")).await?;
    Ok(text(&thread["version"])?.to_owned())
}

/// Kills the host while a tool that has an effect is called, and starts it with a newer version of
/// the app. Returns the id of the run, which then asks how to settle the call.
pub(super) async fn in_doubt(host: &mut Host) -> Result<String> {
    let contents = json!([calls(EFFECT_TOOL, &json!({})), "The menu is announced."]);
    script(host, CUT, &contents).await?;
    let fault = json!({ "kind": "hang_after" });
    let rule =
        json!({ "path": TOOLS_PATH, "body_contains": EFFECT_TOOL, "times": 1, "fault": fault });
    host.order("/__faults", &rule).await?;
    let run = host.post(RUNS, &message(GRAPH, CUT_THREAD, CUT)).await?;
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
