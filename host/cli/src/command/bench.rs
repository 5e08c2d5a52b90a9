//! `wattle bench`: executes a recorded run again and shows where the time of its steps goes.

mod report;

use std::sync::Arc;

use wattle_run::export::Export;
use wattle_run::ports::Ports;
use wattle_run::replay::{RecordedRun, RecordedRunError, RunCost};
use wattle_store::{InMemoryStore, VolatileMemory};

use crate::args::BenchArgs;
use crate::command::bench::report::Report;
use crate::command::{app, replay};
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::replay::ReplayHost;
use crate::load::manifest::Manifest;
use crate::output::Output;

/// Number of executions before the measured executions. These first executions fill the caches of
/// the host and of the machine.
const WARM_UP_RUNS: u32 = 3;

/// Measures a run of an export with the current code of an app and prints the report.
pub(super) async fn bench(
    mut config: Config,
    args: &BenchArgs,
    output: Output,
) -> Result<Exit, Error> {
    let folder = app::folder(&config, Some(args.app.as_str()))?;
    let name = Manifest::read(&folder).map_err(Error::Failed)?.app.name;
    let text = replay::read(&args.export)?;
    let export = Export::read(&text).map_err(|error| to_error(error.into()))?;
    drop(text);
    app::include(&mut config, &name, &folder);
    let code = Box::pin(ReplayHost::open(config)).await?;
    let app = code.newest(&name).await;
    let app = app.ok_or_else(|| Error::Failed(format!("app `{name}` is not loaded")))?;
    let run = RecordedRun::find(&export, &app, args.run.as_deref()).map_err(to_error)?;
    let run = Arc::new(run);
    // The measurement is spawned as a task, because the thread that waits for the command wakes up
    // more slowly than a worker thread.
    let measured = measure(run.clone(), code.ports_with_blobs(&export).await, args.times.get());
    let costs = tokio::spawn(measured)
        .await
        .map_err(|error| Error::Failed(format!("the measurement failed: {error}")))?
        .map_err(to_error)?;
    let report = Report::new(&name, &run, &costs);
    output.data(&report, Report::render);
    Ok(Exit::Ok)
}

/// Executes a run several times.
async fn measure(
    run: Arc<RecordedRun>,
    ports: Ports,
    times: u32,
) -> Result<Vec<RunCost>, RecordedRunError> {
    for _ in 0..WARM_UP_RUNS {
        execute(&run, &ports).await?;
    }
    let mut costs = Vec::new();
    for _ in 0..times {
        costs.push(execute(&run, &ports).await?);
    }
    Ok(costs)
}

/// Executes a run on an empty store.
async fn execute(run: &RecordedRun, ports: &Ports) -> Result<RunCost, RecordedRunError> {
    let (store, memory) = (Arc::new(InMemoryStore::new()), Arc::new(VolatileMemory::new()));
    run.execute(Ports { store, memory, ..ports.clone() }, &InMemoryStore::new()).await
}

/// Returns the error for a run that cannot be measured.
fn to_error(error: RecordedRunError) -> Error {
    let message = error.to_string();
    let hint = match error {
        RecordedRunError::Export(_) => "name a file that `wattle thread export` wrote".to_owned(),
        RecordedRunError::OtherApp { found, .. } => format!("name app `{found}` or its folder"),
        RecordedRunError::NoGraph { .. } => {
            "export a thread of a graph that the app still has".to_owned()
        }
        RecordedRunError::UnknownRun { thread, .. } | RecordedRunError::NoRun { thread } => {
            let hint = format!("`wattle trace {thread}` shows the runs of the thread");
            return Error::NotFound { message, hint };
        }
        RecordedRunError::Unsuitable { .. } => {
            "record a run that starts with an input on a new thread, and completes or stops at an \
             interrupt; name it with `--run` if it is not the newest"
                .to_owned()
        }
        RecordedRunError::Different { .. } => {
            let cause = "the code or its settings have changed since, or several subgraphs ran at \
                         once; record another run";
            return Error::Failed(format!("{message}\n  hint: {cause}"));
        }
        _ => return Error::Failed(message),
    };
    Error::Usage { message, hint }
}
