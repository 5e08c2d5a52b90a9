//! The commands, one per file.

mod app;
mod bench;
mod build;
mod calls;
mod dev;
mod doctor;
mod eval;
mod follow;
mod format;
mod graph;
mod hosts;
mod json_arg;
mod key;
mod maintenance;
mod mcp;
mod migrate;
mod model;
mod new;
mod plugin;
mod replay;
mod run;
mod run_options;
mod serve;
mod sql;
mod store;
mod test;
mod thread;
mod time_travel;
mod trace;

use crate::args::{
    Args, Command, GraphCommand, McpCommand, ModelCommand, PluginCommand, StoreCommand,
    ThreadCommand,
};
use crate::client::{Client, Preload};
use crate::config::{self, Config};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Executes the command that the arguments select. Prints all errors.
pub async fn execute(args: Args) -> Exit {
    let output = Output { json: args.json };
    match Box::pin(dispatch(args, output)).await {
        Ok(exit) => exit,
        Err(error) => {
            match error.problem().filter(|_| output.json) {
                Some(problem) => output.json(&problem),
                None => Output::error(&error.to_string()),
            }
            error.exit()
        }
    }
}

async fn dispatch(args: Args, output: Output) -> Result<Exit, Error> {
    if let Command::Doctor = args.command {
        return doctor::doctor(args.config.as_deref(), output).await;
    }
    if let Command::New(new) = &args.command {
        return new::new(new, output);
    }
    let of_app = match &args.command {
        Command::Build(it) => app::configuration(it.app.app.as_deref()),
        Command::Dev(it) => app::configuration(it.app.app.as_deref()),
        Command::Test(it) => app::configuration(it.app.app.as_deref()),
        Command::Bench(it) => app::configuration(Some(it.app.as_str())),
        _ => None,
    };
    let config = config::read(args.config.as_deref().or(of_app.as_deref()))?;
    let is_verbose = args.verbose > 0;
    match args.command {
        // These commands were executed above.
        Command::Doctor | Command::Compile(_) | Command::New(_) => Ok(Exit::Ok),
        Command::Build(args) => Box::pin(build::build(config, &args, output)).await,
        Command::Dev(args) => Box::pin(dev::dev(config, &args, output)).await,
        Command::Test(args) => Box::pin(test::test(config, &args, output)).await,
        Command::Serve(serve) => serve::serve(config, &serve, output).await,
        Command::Run(run) => Box::pin(run::run(config, run, output)).await,
        Command::Thread(command) => threads(config, command, is_verbose, output).await,
        Command::Graph(GraphCommand::Show(graph)) => {
            graph::show(config, graph.target.as_deref(), output).await
        }
        Command::Graph(GraphCommand::Check(graph)) => {
            graph::check(config, graph.target.as_deref(), output).await
        }
        Command::Graph(GraphCommand::ClearCache(cache)) => {
            let app = cache.target.split('/').next().unwrap_or_default();
            let client = app::client(config, app).await?;
            let result = graph::clear_cache(&client, &cache.target, output).await;
            client.close().await;
            result
        }
        Command::Plugin(PluginCommand::List) => plugin::list(config, output).await,
        Command::Plugin(PluginCommand::Inspect(plugin)) => {
            plugin::inspect(config, &plugin.target, output).await
        }
        Command::Trace(trace) => {
            let client = Client::open(config, Preload::Store).await?;
            let result = if trace.verify {
                trace::verify(&client, &trace.thread, output).await
            } else {
                trace::trace(&client, &trace.thread, is_verbose, output).await
            };
            client.close().await;
            result
        }
        Command::Replay(args) => Box::pin(replay::replay(config, &args, output)).await,
        Command::Bench(args) => Box::pin(bench::bench(config, &args, output)).await,
        Command::Eval(args) => Box::pin(eval::eval(config, args, output)).await,
        Command::Hosts => hosts::list(config, output).await,
        Command::Key(command) => key::keys(config, command, output).await,
        Command::Sql(command) => sql::sql(&config, command, output).await,
        Command::Model(ModelCommand::Check(args)) => model::check(&config, args, output).await,
        Command::Mcp(McpCommand::Check(args)) => mcp::check(&config, args, output).await,
        Command::Store(StoreCommand::Verify) => store::verify(config, output).await,
        Command::Store(StoreCommand::Repair) => store::repair(config, output).await,
        Command::Store(StoreCommand::Backup(args)) => store::backup(config, &args, output).await,
        Command::Store(StoreCommand::Restore(args)) => store::restore(config, &args, output).await,
        Command::Store(StoreCommand::Compact) => {
            let client = Client::open(config, Preload::Store).await?;
            let result = store::compact(&client, output).await;
            client.close().await;
            result
        }
    }
}

async fn threads(
    config: Config,
    command: ThreadCommand,
    is_verbose: bool,
    output: Output,
) -> Result<Exit, Error> {
    let preload = match &command {
        ThreadCommand::Resume(_)
        | ThreadCommand::Retry(_)
        | ThreadCommand::Migrate(_)
        | ThreadCommand::Edit(_)
        | ThreadCommand::Fork(_) => Preload::Apps,
        ThreadCommand::Export(args) if !args.no_code && !args.as_test => Preload::Apps,
        _ => Preload::Store,
    };
    let client = Client::open(config, preload).await?;
    let result = match command {
        ThreadCommand::List(list) => thread::list(&client, &list, output).await,
        ThreadCommand::Show(it) => thread::show(&client, &it.thread, is_verbose, output).await,
        ThreadCommand::State(state) => time_travel::state(&client, &state, output).await,
        ThreadCommand::History(history) => time_travel::history(&client, &history, output).await,
        ThreadCommand::Edit(edit) => time_travel::edit(&client, &edit, output).await,
        ThreadCommand::Fork(fork) => time_travel::fork(&client, fork, output).await,
        ThreadCommand::Resume(resume) => thread::resume(&client, resume, output).await,
        ThreadCommand::Drain(it) => thread::drain(&client, &it.thread, output).await,
        ThreadCommand::Retry(it) => thread::retry(&client, &it.thread, output).await,
        ThreadCommand::Delete(it) => thread::delete(&client, &it.thread, output).await,
        ThreadCommand::Calls(it) => calls::list(&client, &it.thread, output).await,
        ThreadCommand::Settle(settle) => calls::settle(&client, &settle, output).await,
        ThreadCommand::Migrate(migrate) => migrate::migrate(&client, &migrate, output).await,
        ThreadCommand::Export(export) => replay::export(&client, &export, output).await,
        ThreadCommand::Copy(copy) => maintenance::copy(&client, &copy, output).await,
        ThreadCommand::Prune(prune) => maintenance::prune(&client, &prune, output).await,
    };
    client.close().await;
    result
}
