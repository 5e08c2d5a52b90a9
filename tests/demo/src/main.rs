//! `wattle-demo`: starts the stand-ins and the host on free ports with a fresh data folder, and
//! adds assets end to end over HTTP, as a user's front end would. Started by `cargo xtask demo`.

mod host;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use host::Host;
use serde_json::{Value, json};
use table::table;
use tokio::signal::unix::{SignalKind, signal};
use wattle_kit::picture::png_with_text;

/// A sentence with two trades, one of them in a stock that only the light model knows.
const SENTENCE: &str = "昨天买入腾讯 100 股 320，今天卖出苹果 20 股 每股 189.5";

/// What stands in the picture: a portfolio as a broker's app shows it.
const PICTURE: &str = "持有 贵州茅台 200 股 成本 1500；持有 小米 1,000 股 成本 18.2";

#[tokio::main]
async fn main() -> Result<()> {
    let once = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--once") => true,
        Some(other) => bail!("there is no option `{other}`; `--once` ends after the demo"),
    };
    let mut host = Host::start(&root()).await?;
    say(&format!("stand-ins for models and market data on {}", host.standins));
    say(&format!("wattle on {} with data in {}", host.address, host.data.display()));

    let portfolio = host.post("/api/portfolios", &json!({ "name": "长期" })).await?;
    say(&format!("\n== a portfolio\n{portfolio}"));

    let text = json!({ "textInput": SENTENCE });
    say(&format!("\n== assets from a sentence\n{SENTENCE}"));
    let first = add(&mut host, &text, &portfolio["id"]).await?;

    say(&format!("\n== assets from a picture ({PICTURE})"));
    let png = png_with_text(PICTURE, 0);
    let picture = json!({ "imageData": format!("data:image/png;base64,{}", STANDARD.encode(png)) });
    add(&mut host, &picture, &portfolio["id"]).await?;

    for (name, query) in [
        ("Operation", "SELECT * FROM \"Operation\" ORDER BY id"),
        ("Holding", "SELECT * FROM \"Holding\" ORDER BY id"),
        ("OperationLog", "SELECT * FROM \"OperationLog\" ORDER BY id"),
    ] {
        let rows = host.rows(query).await?;
        ensure!(!rows.is_empty(), "table {name} is empty");
        say(&format!("\n== table {name}, read back from the database\n{}", table(&rows)));
    }

    say(&format!("\n== trace of the sentence (`wattle trace {first}`)"));
    say(&host.wattle(&["trace", &first]).await?);
    say(&next_steps(&host, &first));
    if !once {
        say("the server goes on; Ctrl-C ends it");
        wait_for_end().await?;
    }
    host.stop().await
}

/// Ctrl-C, or SIGTERM from whoever started the demo in the background.
async fn wait_for_end() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot wait for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

/// One round: input, review by a person (here the demo agrees to everything), rows.
async fn add(host: &mut Host, input: &Value, portfolio: &Value) -> Result<String> {
    let parsed = host.post("/api/ai/asset-graph/invoke", input).await?;
    let thread = parsed["threadId"].as_str().context("the answer has no threadId")?.to_owned();
    let review = &parsed["reviewPayload"];
    let rows = review["rows"].as_array().context("the answer has no rows")?.clone();
    ensure!(!rows.is_empty(), "nothing was read: {parsed}");
    say(&format!("review of thread {thread}: {}", review["type"]));
    say(&table(&rows));
    say(&format!("missing: {}   warnings: {}", review["missingFields"], review["warnings"]));
    let confirmed = json!({ "rows": rows, "riskCategory": "aggressive", "portfolioId": portfolio });
    let body = json!({ "threadId": thread, "confirmedData": confirmed });
    let stored = host.post("/api/ai/asset-graph/resume", &body).await?;
    ensure!(stored["storeResult"]["success"] == true, "not stored: {stored}");
    say(&format!("confirmed and stored: {}", stored["storeResult"]));
    Ok(thread)
}

fn next_steps(host: &Host, thread: &str) -> String {
    let (address, config) = (&host.address, host.config.display());
    let wattle = host.binary.display();
    format!(
        "\n== what next\n\
         curl -s {address}/api/v1/threads/{thread}/trace\n\
         curl -s {address}/api/ai/asset-graph/invoke -H 'content-type: application/json' \\\n  \
           -d '{{\"textInput\": \"持有 英伟达 10 股 成本 120\"}}'\n\
         {wattle} --config {config} thread list\n\
         {wattle} --config {config} graph show asset\n\
         the interface is described at {address}/openapi.json; README.md says how to use real models"
    )
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

#[expect(clippy::print_stdout, reason = "what the demo shows is its output")]
fn say(text: &str) {
    println!("{text}");
}
