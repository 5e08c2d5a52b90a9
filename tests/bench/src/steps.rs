//! Steps per second of graphs whose nodes do nearly nothing, with 1 KB of state: with one node and
//! ten nodes, with 1 and 64 concurrent runs, in memory and on redb, with a native closure and with
//! a WebAssembly guest.
//!
//! Every value is the median of several rounds. All measurements run in one process, one after the
//! other, so that they are comparable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunService as _;
use wattle_run::ports::Plugin;
use wattle_run::ports::store::Durability;

use crate::timed::TimedStore;
use crate::{graphs, host, print_line, stores};

/// Number of rounds of each measurement. The median counts.
const ROUNDS: usize = 5;

/// Duration of one round.
const ROUND: Duration = Duration::from_millis(1_500);

/// Size of the text in the state, in bytes.
const TEXT_BYTES: usize = 1_000;

/// A row of the table.
struct Case {
    code: &'static str,
    store: &'static str,
    nodes: usize,
    runs: usize,
}

/// Measures all cases and prints a table.
pub(crate) fn table() -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let heads = ["code", "store", "nodes", "runs", "steps/s", "us/step"];
    print_cells(&[&heads[..], &["task %", "append %", "flush wait %"]].concat());
    for code in ["native", "wasm"] {
        let plugin = runtime.block_on(host::plugin(code))?;
        for store in ["memory", "redb"] {
            for nodes in [1, 10] {
                for runs in [1, 64] {
                    let case = Case { code, store, nodes, runs };
                    measure(&runtime, &case, plugin.clone())?;
                }
            }
        }
    }
    Ok(())
}

/// The result of one round.
struct Round {
    steps_per_second: f64,
    task: f64,
    append: f64,
    flush: f64,
}

fn measure(runtime: &Runtime, case: &Case, plugin: Arc<dyn Plugin>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().to_string_lossy();
    let inner = runtime.block_on(stores::open(case.store, &place))?;
    let store = Arc::new(TimedStore::over(inner));
    let toml = graphs::line_toml(case.nodes);
    let engine = host::engine(runtime.handle().clone(), store.clone(), plugin, &toml)?;
    let mut rounds = Vec::new();
    round(runtime, &engine, &store, case)?;
    for _ in 0..ROUNDS {
        rounds.push(round(runtime, &engine, &store, case)?);
    }
    rounds.sort_by(|a, b| a.steps_per_second.total_cmp(&b.steps_per_second));
    let median = &rounds[ROUNDS / 2];
    print_cells(&[
        case.code,
        case.store,
        &case.nodes.to_string(),
        &case.runs.to_string(),
        &format!("{:.0}", median.steps_per_second),
        &format!("{:.1}", 1e6 / median.steps_per_second),
        &format!("{:.0}", median.task * 100.0),
        &format!("{:.0}", median.append * 100.0),
        &format!("{:.0}", median.flush * 100.0),
    ]);
    Ok(())
}

/// Executes runs in `case.runs` lanes, one after the other in each lane, until the end of the
/// round.
fn round(runtime: &Runtime, engine: &Engine, store: &TimedStore, case: &Case) -> Result<Round> {
    store.reset();
    let started = Instant::now();
    let finished: usize = runtime.block_on(async {
        let lanes: Vec<_> =
            (0..case.runs).map(|_| tokio::spawn(lane(engine.clone(), started + ROUND))).collect();
        let mut finished = 0;
        for lane in lanes {
            finished += lane.await??;
        }
        Ok::<_, anyhow::Error>(finished)
    })?;
    let wall = started.elapsed().as_secs_f64();
    // Every lane waits for its own runs, so the time of all lanes is the wall time multiplied by
    // their number.
    let lane_time = wall * case.runs as f64;
    Ok(Round {
        steps_per_second: (finished * case.nodes) as f64 / wall,
        task: store.task_seconds() / lane_time,
        append: store.append_seconds() / lane_time,
        flush: store.wait_seconds() / lane_time,
    })
}

async fn lane(engine: Engine, until: Instant) -> Result<usize> {
    let input: Value = json!({ "document": graphs::document(TEXT_BYTES) });
    let mut finished = 0;
    while Instant::now() < until {
        let (run, state) = host::run(&engine, &input, Durability::Commit).await?;
        anyhow::ensure!(state["document"]["n"].as_u64() > Some(0), "{state}");
        engine.delete_thread(&run.thread).await?;
        finished += 1;
    }
    Ok(finished)
}

fn print_cells(cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>12}")).collect();
    print_line(&cells.join(" "));
}
