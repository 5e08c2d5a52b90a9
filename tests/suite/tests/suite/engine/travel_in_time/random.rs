//! A property: a run from any earlier checkpoint reaches the same end as the first run.

use serde_json::{Value, json};
use wattle_graph::id::CheckpointId;
use wattle_graph::plan::TaskInput;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::store::RunOptions;
use wattle_run::time_travel::{ForkFrom, ForkInto, ForkThread, HistoryQuery, StateView};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

use super::history;

const WALK: &str = r#"
[graphs.walk]
entry = "walk"
recursion_limit = 100
[graphs.walk.channels.seed]
[graphs.walk.channels.left]
[graphs.walk.channels.trail]
reducer = "append"
[graphs.walk.channels.sum]
reducer = "sum"
[graphs.walk.nodes.walk]
plugin = "p"
goto = ["walk", "side", "pair"]
[graphs.walk.nodes.side]
plugin = "p"
goto = ["walk"]
[graphs.walk.nodes.pair]
plugin = "p"
[[graphs.walk.edges]]
from = "pair"
to = "walk"
"#;

/// Returns the next number of a pseudorandom sequence.
fn after(seed: u64) -> u64 {
    seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 1
}

/// Returns a plugin whose nodes go where the state determines, so that a repetition takes the same
/// path.
fn walker() -> NativePlugin {
    let number = |input: &TaskInput, name: &str| input.get(name).as_u64().unwrap_or_default();
    NativePlugin::new("p", "1")
        .node("walk", move |call, _| async move {
            let (seed, left) = (number(&call.input, "seed"), number(&call.input, "left"));
            let turn = after(seed);
            let way = match turn % 4 {
                _ if left == 0 => json!({ "$goto": ["END"] }),
                0 => json!({ "$goto": ["side"] }),
                1 => json!({ "$goto": ["pair"] }),
                2 => json!({ "$goto": ["END"], "$send": [
                    { "node": "pair", "input": { "own": turn % 7 } },
                    { "node": "pair", "input": { "own": turn % 5 } },
                ] }),
                _ => json!({ "$goto": ["walk", "side"] }),
            };
            let mut outcome = json!({
                "seed": turn, "left": left.saturating_sub(1), "trail": turn % 100, "sum": turn % 3,
            });
            if let (Value::Object(outcome), Value::Object(way)) = (&mut outcome, way) {
                outcome.extend(way);
            }
            Ok(outcome)
        })
        .node("side", move |call, _| async move {
            Ok(json!({ "sum": number(&call.input, "sum") % 5, "$goto": ["walk"] }))
        })
        .node("pair", move |call, _| async move {
            Ok(json!({ "trail": ["pair", call.input.get("own")] }))
        })
}

/// Returns the parts of a checkpoint that its copy must equal.
fn essence(view: &StateView) -> Value {
    let tasks = view.tasks.iter().map(|task| json!([task.node, task.index, task.writes]));
    json!([view.values, view.next, tasks.collect::<Vec<_>>()])
}

#[tokio::test]
async fn a_fork_of_any_checkpoint_ends_like_the_first_run() {
    for seed in 0..12_u64 {
        let world = World::new(WALK, walker());
        let first = world.run(json!({ "seed": seed * 7919, "left": 9 })).await;
        let thread = &first.run.thread;
        let past = history(&world, thread, HistoryQuery::default()).await;
        let at = 1 + after(seed) as usize % (past.len() - 1);
        let from = ForkFrom::Checkpoint { checkpoint: past[at].checkpoint, input: None };
        let into = if seed % 2 == 0 { ForkInto::InPlace } else { ForkInto::Copy { thread: None } };
        let request = ForkThread {
            run: None,
            thread: thread.clone(),
            from,
            into,
            app: None,
            tenant: None,
            options: RunOptions::default(),
            principal: None,
        };
        let run = world.engine.fork(request).await.unwrap();
        let forked = world.engine.wait(&run).await.unwrap();
        assert_eq!((&forked.outcome, &forked.state), (&first.outcome, &first.state), "seed {seed}");
        assert_eq!(forked.outcome, RunOutcome::Completed);
        let limit = Some(at + 1);
        let query = HistoryQuery { limit, ..HistoryQuery::default() };
        let again = history(&world, &run.thread, query).await;
        let essences = |views: &[StateView]| views.iter().map(essence).collect::<Vec<_>>();
        assert_eq!(essences(&again), essences(&past[..=at]), "seed {seed}");
        let last = past[0].checkpoint.0 + 1;
        assert_eq!(again[at].checkpoint, CheckpointId(last), "checkpoint numbers continue");
    }
}
