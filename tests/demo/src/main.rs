//! `wattle-demo`: starts the stand-ins and the host on free ports with a new data folder, and uses
//! all applications over HTTP, as a front end would. `cargo xtask demo` starts it. `--once` exits
//! after the demo, and `--folder <path>` names the folder of configuration and data.

mod asset;
mod config;
mod expense;
mod host;
mod nl2sql;
mod reasoning;
mod studio;
mod table;
mod tour;
mod travel;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use host::Host;
use studio::View;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<()> {
    let Options { once, folder } = Options::read(std::env::args().skip(1))?;
    let mut host = Host::start(&root(), folder).await?;
    say(&format!("stand-ins for all outside services on {}", host.standins));
    say(&format!("wattle on {} with data in {}", host.address, host.data.display()));

    say("\n==== asset: trades and holdings from a sentence and a picture");
    let first = asset::show(&host).await?;
    say(&format!("\n== trace of the sentence (`wattle trace {first}`)"));
    say(&host.wattle(&["trace", &first]).await?);
    say("\n==== expense: a conversation that books expenses");
    let talk = expense::show(&host).await?;
    say(&format!(
        "\n== trace of the conversation, with the host calls of tools (`wattle trace {talk}`)"
    ));
    say(&host.wattle(&["trace", &talk]).await?);
    say("\n==== nl2sql: questions to a database");
    nl2sql::show(&host).await?;
    say("\n==== reasoning: questions to an ontology, with audit");
    reasoning::show(&host).await?;
    say("\n==== travel: a travel guide from a video, step by step");
    travel::show(&host).await?;

    say("\n==== studio: a thread for each view");
    let views = studio::show(&mut host).await?;

    say(&next_steps(&host, &first, &views));
    if !once {
        say("the server keeps running; press Ctrl-C to stop it");
        wait_for_end().await?;
    }
    host.stop().await
}

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    /// True if the program exits after the demo.
    once: bool,
    /// The folder of configuration and data; `None` for a new one.
    folder: Option<PathBuf>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--once" => options.once = true,
                "--folder" => {
                    let folder = arguments.next().context("`--folder` needs a path")?;
                    options.folder = Some(std::path::absolute(folder)?);
                }
                other => bail!(
                    "unknown option `{other}`; `--once` exits after the demo, `--folder <path>` \
                     names the folder of configuration and data"
                ),
            }
        }
        Ok(options)
    }
}

/// Waits for Ctrl-C, or for SIGTERM if the demo runs in the background.
async fn wait_for_end() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot wait for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

/// Returns commands to try, and then the addresses of the studio.
fn next_steps(host: &Host, thread: &str, views: &[View]) -> String {
    let (address, config) = (&host.address, host.config.display());
    let wattle = host.binary.display();
    let studio = studio_links(address, thread, views);
    format!(
        "\n== what next\n\
         a browser: {address}/ shows all applications with examples\n\
         curl -s {address}/api/v1/threads/{thread}/trace\n\
         curl -s {address}/apps/asset/api/ai/asset-graph/invoke -H 'content-type: application/json' \\\n  \
           -d '{{\"textInput\": \"持有 英伟达 10 股 成本 120\"}}'\n\
         curl -s {address}/apps/expense/api/chat -H 'content-type: application/json' \\\n  \
           -d '{{\"message\": \"昨天打车花了20元\"}}'\n\
         curl -sN {address}/apps/nl2sql/api/chat/stream -H 'content-type: application/json' \\\n  \
           -d '{{\"message\": \"各城市的订单数\"}}'\n\
         curl -sN {address}/api/v1/apps/tour/graphs/tour/ag-ui -H 'content-type: application/json' \\\n  \
           -d '{{\"threadId\": \"ag-ui\", \"runId\": \"ag-ui-1\", \"messages\": \
           [{{\"id\": \"1\", \"role\": \"user\", \"content\": \"hello\"}}]}}'\n\
         curl -s {address}/metrics\n\
         {wattle} --config {config} thread list\n\
         {wattle} --config {config} graph show asset\n\
         the interface is described at {address}/openapi.json; README.md says how to use real models\n\
         {studio}"
    )
}

/// Returns the addresses of the views, and of the thread with the sentence.
fn studio_links(address: &str, thread: &str, views: &[View]) -> String {
    let links = views.iter().map(|View { what, path }| format!("  {what}:\n    {address}{path}"));
    let links: Vec<String> = links.collect();
    format!(
        "\n== the studio: {address}/studio/\n  \
           the first thread of `asset`:\n    {address}/studio/threads/{thread}\n{}",
        links.join("\n")
    )
}

/// Returns the root of the repository.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

#[expect(clippy::print_stdout, reason = "the text is the output of the program")]
fn say(text: &str) {
    println!("{text}");
}
