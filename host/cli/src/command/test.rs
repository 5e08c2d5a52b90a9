//! `wattle test`: runs the cases and the exported threads in the `tests` folder of an app.

mod host;
mod report;
mod thread;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;
use wattle_api::document::app::AppDocument;
use wattle_graph::suggest;

use crate::args::TestArgs;
use crate::build::AppBuild;
use crate::cases::case::{self, Case};
use crate::cases::ctrl_c::CtrlC;
use crate::cases::date::Today;
use crate::cases::ports::CasePorts;
use crate::cases::runner::Runner;
use crate::cases::verdict::{Check, Mismatch};
use crate::client::{Client, Preload, encode_segment};
use crate::command::app;
use crate::command::test::report::{Kind, Report, TestResult};
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::open_sandbox;
use crate::load::file;
use crate::load::manifest::Manifest;
use crate::output::Output;

/// Folder of the tests in the folder of an app.
const TESTS_FOLDER: &str = "tests";

/// Extension of a file with cases.
const CASES_EXTENSION: &str = "jsonl";

/// Extension of a file with an exported thread.
const THREAD_EXTENSION: &str = "thread";

/// Metadata key of a thread that contains the name of its case.
const METADATA_KEY: &str = "test";

/// One test.
enum Test {
    Case(Box<Case>),
    /// The file of an exported thread.
    Thread(PathBuf),
}

impl Test {
    fn name(&self) -> String {
        match self {
            Self::Case(case) => case.name.clone(),
            Self::Thread(file) => {
                file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }
}

/// Runs the tests of an app and prints the report.
pub(super) async fn test(config: Config, args: &TestArgs, output: Output) -> Result<Exit, Error> {
    let folder = app::folder(&config, args.app.app.as_deref())?;
    let manifest = Manifest::read(&folder).map_err(Error::Failed)?;
    let name = manifest.app.name;
    let tests = select_tests(find_tests(&folder)?, &args.only)?;
    let sandbox = open_sandbox(&config)?;
    let ctrl_c = CtrlC::listen()?;
    if manifest.build.is_some() && !args.no_build {
        let build = AppBuild::open(&folder)?;
        tokio::select! {
            built = build.build(sandbox.as_ref(), false) => drop(built?),
            () = ctrl_c.pressed() => return Ok(Exit::Stopped),
        }
    }
    let today = Today::from_clock(&config.clock)?;
    let data = TempDir::new().map_err(Error::file("create", std::env::temp_dir()))?;
    let ports = (!args.live).then(|| CasePorts::new(today.clone()));
    let config = host::config(config, &name, &folder, (!args.live).then_some(data.path()))?;
    let overrides = host::overrides(sandbox, ports.as_ref());
    let client = tokio::select! {
        client = Client::local(config, Preload::Apps, overrides) => client?,
        () = ctrl_c.pressed() => return Ok(Exit::Stopped),
    };
    let runner = Runner {
        client: &client,
        app: name.as_str(),
        today,
        timeout: args.timeout,
        ctrl_c: &ctrl_c,
        metadata_key: METADATA_KEY,
    };
    let report = tokio::select! {
        report = run_all(&runner, ports.as_ref(), &tests) => report,
        // The second Ctrl-C ends the command without waiting for the running case to be cancelled.
        () = ctrl_c.pressed_again() => return Ok(Exit::Stopped),
    };
    let stopped = ctrl_c.is_pressed();
    client.close().await;
    let report = report?;
    output.data(&report, Report::render);
    Ok(match report.failed {
        _ if stopped => Exit::Stopped,
        0 => Exit::Ok,
        _ => Exit::Failed,
    })
}

/// Runs the tests sequentially, so that the results in a case are used only for calls of this case.
async fn run_all(
    runner: &Runner<'_>,
    ports: Option<&CasePorts>,
    tests: &[Test],
) -> Result<Report, Error> {
    // Wait for the app first. Otherwise each test would report that the app is missing.
    let _: AppDocument =
        runner.client.get(&format!("/api/v1/apps/{}", encode_segment(runner.app))).await?;
    let mut done = Vec::new();
    for test in tests {
        if runner.ctrl_c.is_pressed() {
            break;
        }
        done.push(match test {
            Test::Case(case) => run_case(runner, ports, case).await?,
            Test::Thread(file) => {
                let started = Instant::now();
                let outcome = thread::replay(runner, file).await?;
                TestResult::from_replay(test.name(), outcome, started.elapsed())
            }
        });
    }
    Ok(Report::new(runner.app, done))
}

async fn run_case(
    runner: &Runner<'_>,
    ports: Option<&CasePorts>,
    case: &Case,
) -> Result<TestResult, Error> {
    if let Some(ports) = ports {
        ports.begin(case);
    }
    let ended = runner.run(case).await?;
    let mut verdict = ended.verdict;
    for (index, entry) in ports.map(CasePorts::end).unwrap_or_default() {
        verdict.passed = false;
        let pointer = format!("/calls/{index}");
        let mismatch = Some(Mismatch { expected: entry.source, got: Value::Null });
        verdict.checks.push(Check { field: pointer.clone(), pointer, passed: false, mismatch });
    }
    Ok(TestResult {
        name: case.name.clone(),
        kind: Kind::Case,
        passed: verdict.passed,
        time_ms: ended.time_ms,
        status: Some(verdict.status),
        failure: verdict.failure,
        checks: verdict.checks,
        replay: None,
    })
}

/// Returns the tests of an app, sorted by the names of their files.
fn find_tests(folder: &Path) -> Result<Vec<Test>, Error> {
    let folder = folder.join(TESTS_FOLDER);
    let entries = if folder.is_dir() {
        file::entries(&folder).map_err(|error| Error::Failed(error.to_string()))?
    } else {
        Vec::new()
    };
    let mut tests = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.kind.is_file()) {
        if entry.has_ending(CASES_EXTENSION) {
            let cases = case::read(&entry.path)?;
            tests.extend(cases.into_iter().map(|case| Test::Case(Box::new(case))));
        } else if entry.has_ending(THREAD_EXTENSION) {
            tests.push(Test::Thread(entry.path));
        }
    }
    if tests.is_empty() {
        return Err(Error::NotFound {
            message: format!("`{}` has no tests", folder.display()),
            hint: format!(
                "write cases into a file `*.{CASES_EXTENSION}` there, or export a thread with \
                 `wattle thread export --as-test --file {TESTS_FOLDER}/NAME.{THREAD_EXTENSION}`"
            ),
        });
    }
    Ok(tests)
}

/// Selects the named tests, or all of them.
fn select_tests(mut tests: Vec<Test>, only: &[String]) -> Result<Vec<Test>, Error> {
    let names: Vec<String> = tests.iter().map(Test::name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(Error::NotFound {
            message: format!("there is no test `{unknown}`"),
            hint: suggest::hint(unknown, "the tests are", names.iter().map(String::as_str)),
        });
    }
    tests.retain(|test| only.is_empty() || only.contains(&test.name()));
    Ok(tests)
}
