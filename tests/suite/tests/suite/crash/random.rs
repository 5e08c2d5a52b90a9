//! A property: a random graph reaches the same end with and without crashes, and every effect takes
//! place once.

mod graphs;
mod nodes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::id::ThreadId;
use wattle_kit::needs;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, RunOutcome, RunRef, RunService, StartRun};
use wattle_run::ports::store::ThreadStatus;
use wattle_suite::effects::{Effects, Side};
use wattle_suite::world::World;

pub(in crate::crash) use self::graphs::Dice;
use self::graphs::graphs;

/// Number of graphs, unless [`SEEDS`] is set. They take some seconds.
const GRAPHS: u64 = 48;

/// The environment variable with the number of graphs, or with their seeds as `from..to`.
const SEEDS: &str = "WATTLE_RANDOM_GRAPHS";

/// A trial of fewer graphs need not contain many crashes and effects.
const FEW: usize = 24;

/// Maximum number of crashes of one run: enough to interrupt every kind of node, and few enough to
/// end.
const CRASHES: usize = 12;

/// Maximum number of requests between two crashes.
const REQUESTS: u64 = 8;

/// One run of a graph, with or without crashes.
struct Trial {
    world: World,
    effects: Arc<Effects>,
    dice: Option<Dice>,
    crashes: usize,
}

/// The result of a trial.
#[derive(Debug, PartialEq)]
struct End {
    outcome: RunOutcome,
    state: Value,
    /// Number of effects by URL. Repetitions under the same key do not count.
    effects: BTreeMap<String, usize>,
}

impl Trial {
    fn new(toml: &str, dice: Option<Dice>) -> Self {
        let effects = Arc::new(Effects::default());
        let world = World::with_net(toml, nodes::plugin(), effects.clone());
        Self { world, effects, dice, crashes: 0 }
    }

    /// Runs to the end and answers each interrupt.
    async fn run(&mut self) -> End {
        let thread = ThreadId::new("random").unwrap();
        let request =
            StartRun { thread: Some(thread.clone()), ..self.world.request(None, json!({})) };
        self.arm();
        let run = self.world.engine.start(request).await.unwrap();
        let mut ended = self.end(&run).await;
        while let RunOutcome::Interrupted { interrupts, .. } = &ended.outcome {
            let answers: Vec<(String, Value)> = interrupts
                .iter()
                .map(|question| (question.id.clone(), nodes::answer(&question.payload)))
                .collect();
            if self.dice.as_mut().is_some_and(|dice| dice.chance(30)) {
                self.crash().await;
            }
            ended = self.resume(&thread, answers).await;
        }
        // The keys contain task ids. In subgraphs these depend on which of several graphs makes its
        // checkpoints first, so effects are counted by URL.
        let mut effects = BTreeMap::new();
        for address in self.effects.made().into_values() {
            *effects.entry(address).or_default() += 1;
        }
        End { outcome: ended.outcome, state: ended.state, effects }
    }

    async fn resume(&mut self, thread: &ThreadId, answers: Vec<(String, Value)>) -> EndedRun {
        let request = wattle_run::hostcall::runs::ResumeRun {
            run: None,
            thread: thread.clone(),
            answers: answers.into_iter().collect(),
            on_failure: OnFailure::Keep,
            app: None,
            tenant: None,
            options: Default::default(),
            principal: None,
        };
        self.arm();
        let run = self.world.engine.resume(request).await.unwrap();
        self.end(&run).await
    }

    /// Waits for the end of a run through all crashes.
    async fn end(&mut self, run: &RunRef) -> EndedRun {
        loop {
            let effects = self.effects.clone();
            tokio::select! {
                biased;
                () = effects.stopped() => {}
                ended = self.world.engine.wait(run) => return ended.unwrap(),
            }
            self.crash().await;
            self.arm();
            let engine = &self.world.engine;
            if engine.recover().await > 0 {
                continue;
            }
            if engine.set_aside(&run.thread).is_some() {
                // The last crashes left no progress between them.
                engine.retry_recovery(&run.thread).await.unwrap();
            } else {
                // The request that stopped belonged to an earlier host, and the run had already
                // ended.
                let view = engine.thread(&run.thread).await.unwrap().unwrap();
                assert_ne!(view.status, ThreadStatus::Running, "the run has ended");
            }
        }
    }

    /// Makes one of the next requests stop, unless all crashes have happened.
    fn arm(&mut self) {
        self.effects.go_on();
        let Some(dice) = self.dice.as_mut().filter(|_| self.crashes < CRASHES) else { return };
        let side = if dice.chance(50) { Side::Before } else { Side::After };
        let number = 1 + dice.below(REQUESTS);
        self.effects.stop_at(usize::try_from(number).unwrap(), side);
    }

    async fn crash(&mut self) {
        self.crashes += 1;
        self.world.crash().await;
    }
}

/// Returns the effects whose numbers differ.
fn differences(whole: &End, cut: &End) -> String {
    let addresses: BTreeSet<&String> = whole.effects.keys().chain(cut.effects.keys()).collect();
    let count = |end: &End, address| end.effects.get(address).copied().unwrap_or_default();
    let lines = addresses.into_iter().map(|it| (it, count(whole, it), count(cut, it)));
    let lines = lines.filter(|(_, whole, cut)| whole != cut);
    lines.map(|(it, whole, cut)| format!("{it}: {cut} times instead of {whole}\n")).collect()
}

/// Seeds of graphs: a range such as `20..30`, or a number that starts at 0.
struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (from, to) = text.split_once("..").unwrap_or(("0", text));
        let (Ok(from), Ok(to)) = (from.parse(), to.parse()) else {
            return Err("expected a number or a range such as 20..30");
        };
        Ok(Self(from..to))
    }
}

#[tokio::test]
async fn a_run_with_crashes_ends_like_one_without() {
    let mut seen = BTreeMap::<&str, usize>::new();
    let Seeds(seeds) = needs::setting(SEEDS).unwrap_or(Seeds(0..GRAPHS));
    for seed in seeds {
        let toml = graphs(seed);
        let whole = Trial::new(&toml, None).run().await;
        let mut trial = Trial::new(&toml, Some(Dice::new(seed)));
        let cut = trial.run().await;
        let case = || format!("seed {seed}, {} crashes:\n{toml}", trial.crashes);
        assert_eq!(whole.outcome, RunOutcome::Completed, "{}", case());
        assert_eq!(cut.outcome, whole.outcome, "{}", case());
        assert_eq!(cut.state, whole.state, "{}", case());
        assert!(cut.effects == whole.effects, "{}\n{}", differences(&whole, &cut), case());
        let effects = cut.effects.values().sum();
        for (what, count) in [("crashes", trial.crashes), ("effects", effects), ("graphs", 1)] {
            *seen.entry(what).or_default() += count;
        }
    }
    let (graphs, crashes, effects) = (seen["graphs"], seen["crashes"], seen["effects"]);
    let is_enough = graphs < FEW || (crashes > graphs && effects > graphs * 10);
    assert!(is_enough, "{seen:?}");
}
