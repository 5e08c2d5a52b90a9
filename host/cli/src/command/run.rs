//! `wattle run`: runs a graph and follows the run.

use wattle_api::document::run::{RunDocument, StartDocument};

use crate::args::RunArgs;
use crate::client::{Client, encode_segment};
use crate::command::{app, follow, json_arg, run_options};
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

pub(super) async fn run(config: Config, args: RunArgs, output: Output) -> Result<Exit, Error> {
    let (app, graph) = match args.target.split_once('/') {
        Some((app, graph)) => (app, Some(graph.to_owned())),
        None => (args.target.as_str(), None),
    };
    let context = args.context.as_deref().map(json_arg::parse).transpose()?;
    let start = StartDocument {
        graph,
        input: json_arg::parse(&args.input)?,
        thread_id: args.thread,
        context: context.unwrap_or_default(),
        options: run_options::to_document(args.options)?,
        ..StartDocument::default()
    };
    let client = app::client(config, app).await?;
    let result = start_and_follow(&client, app, &start, args.quiet, output).await;
    client.close().await;
    result
}

async fn start_and_follow(
    client: &Client,
    app: &str,
    start: &StartDocument,
    quiet: bool,
    output: Output,
) -> Result<Exit, Error> {
    let path = format!("/api/v1/apps/{}/runs", encode_segment(app));
    let run: RunDocument = client.post(&path, start).await?;
    follow::follow(client, &run, 0, quiet, output).await
}
