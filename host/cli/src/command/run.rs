//! `wattle run`: runs a graph and follows the run.

use wattle_api::document::run::{RunDocument, StartDocument};

use crate::args::RunArgs;
use crate::client::{Client, segment};
use crate::command::{control, follow, input};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

pub(super) async fn run(client: &Client, args: RunArgs, output: Output) -> Result<Exit, Error> {
    let (app, graph) = match args.target.split_once('/') {
        Some((app, graph)) => (app, Some(graph.to_owned())),
        None => (args.target.as_str(), None),
    };
    let context = args.context.as_deref().map(input::json).transpose()?;
    let start = StartDocument {
        graph,
        input: input::json(&args.input)?,
        thread_id: args.thread,
        context: context.unwrap_or_default(),
        options: control::options(args.options)?,
        ..StartDocument::default()
    };
    let path = format!("/api/v1/apps/{}/runs", segment(app));
    let run: RunDocument = client.post(&path, &start).await?;
    follow::follow(client, &run, 0, args.quiet, output).await
}
