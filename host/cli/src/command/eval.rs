//! `wattle eval`: runs the data set of an app and measures the results of the configured models.

mod case_run;
mod report;
mod usage;

use std::path::PathBuf;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};
use wattle_api::document::app::AppDocument;

use crate::args::EvalArgs;
use crate::cases::case::{self, Case};
use crate::cases::ctrl_c::CtrlC;
use crate::cases::date::Today;
use crate::cases::runner::Runner;
use crate::client::encode_segment;
use crate::command::app;
use crate::command::eval::case_run::{CaseRun, EvalRunner};
use crate::command::eval::report::Report;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::load;
use crate::output::{Output, printable};

/// Path of the data set in the folder of an app.
const DATA_SET: &str = "eval/cases.jsonl";

/// Metadata key of a thread that contains the name of its case.
const METADATA_KEY: &str = "eval";

/// Runs a data set and prints the report.
pub(super) async fn eval(config: Config, args: EvalArgs, output: Output) -> Result<Exit, Error> {
    let file = match &args.cases {
        Some(file) => file.clone(),
        None => data_set(&config, &args.app)?,
    };
    let cases = case::select_cases(case::read(&file)?, &args.only)?;
    if let Some(case) = cases.iter().find(|case| !case.calls.is_empty()) {
        return Err(Error::Usage {
            message: format!("case `{}` of `{}` has `calls`", case.name, file.display()),
            hint:
                "`wattle eval` measures the configured models; move the case to `tests`, and run \
                   it with `wattle test`"
                    .into(),
        });
    }
    let today = Today::from_clock(&config.clock)?;
    let prices = config.eval_prices();
    let client = app::client(config, &args.app).await?;
    let ctrl_c = CtrlC::listen()?;
    let runner = Runner {
        client: &client,
        app: &args.app,
        today,
        timeout: args.timeout,
        ctrl_c: &ctrl_c,
        metadata_key: METADATA_KEY,
    };
    let eval_runner = EvalRunner { runner, prices: &prices, keep: args.keep };
    let planned = repeat_cases(&cases, &args);
    let started = Instant::now();
    let runs = tokio::select! {
        runs = run_all(&eval_runner, &planned, &args) => runs,
        // The second Ctrl-C ends the command without waiting for the running cases to be cancelled.
        () = ctrl_c.pressed_again() => return Ok(Exit::Stopped),
    };
    client.close().await;
    let report = Report::new(&args.app, file, runs?, planned.len(), started.elapsed());
    output.data(&report, Report::render);
    if ctrl_c.is_pressed() {
        return Ok(Exit::Stopped);
    }
    Ok(exit_code(&report, args.require))
}

/// Returns the selected cases in the order of the data set, each `--repeat` times.
fn repeat_cases<'c>(cases: &'c [Case], args: &EvalArgs) -> Vec<&'c Case> {
    cases.iter().flat_map(|case| (0..args.repeat.get()).map(move |_| case)).collect()
}

/// Returns the path of the data set in the folder of an app.
fn data_set(config: &Config, app: &str) -> Result<PathBuf, Error> {
    let mut apps = load::apps(config);
    let folder = apps.remove(app).ok_or_else(|| app::unknown(config, app))?;
    let file = folder.join(DATA_SET);
    if file.is_file() {
        return Ok(file);
    }
    Err(Error::NotFound {
        message: format!("app `{app}` has no data set `{DATA_SET}`"),
        hint: "name one with `--cases FILE`".into(),
    })
}

/// Runs the cases. The results have the order of the cases.
async fn run_all(
    eval_runner: &EvalRunner<'_>,
    planned: &[&Case],
    args: &EvalArgs,
) -> Result<Vec<CaseRun>, Error> {
    // Check the app first. Otherwise each case would report that the app is missing.
    let path = format!("/api/v1/apps/{}", encode_segment(eval_runner.runner.app));
    let _: AppDocument = eval_runner.runner.client.get(&path).await?;
    let bar = progress(planned.len(), args.quiet);
    let runs = planned.iter().map(|case| eval_runner.run(case));
    let mut runs = stream::iter(runs).buffered(args.concurrency.get() as usize);
    let mut done = Vec::new();
    while let Some(run) = runs.next().await {
        let Some(run) = run? else { continue };
        if !run.passed && !args.quiet {
            let line = format!("  {}: {}, not as expected", run.name, run.status);
            bar.println(printable(&line));
        }
        bar.inc(1);
        done.push(run);
    }
    bar.finish_and_clear();
    Ok(done)
}

fn progress(cases: usize, quiet: bool) -> ProgressBar {
    if quiet || !Output::is_interactive() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(cases as u64);
    // The template is a valid constant, so this does not fail.
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {pos}/{len}") {
        bar.set_style(style);
    }
    bar
}

fn exit_code(report: &Report, require: Option<f64>) -> Exit {
    let share = report.summary.score.share;
    match require {
        Some(require) if share < require => {
            Output::error(&format!(
                "{:.1} % of the runs ended as expected, below the required {:.1} %",
                share * 100.0,
                require * 100.0
            ));
            Exit::Failed
        }
        _ => Exit::Ok,
    }
}
