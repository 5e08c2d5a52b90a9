//! The lines below a graph of the page: its nodes, the commands, and their results.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use futures::TryStreamExt as _;
use serde_json::{Value, json};
use wattle_graph::definition::HumanDuration;
use wattle_graph::event::{EventKind, Write};
use wattle_graph::failure::Failure;
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, NodeName, ThreadId};
use wattle_graph::migrate::MigrateOptions;
use wattle_graph::step::{Edit, EditAs};
use wattle_run::engine::migrate::MigrateThread;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::export::{Export, ExportParts};
use wattle_run::grant::{Grants, InDoubtPolicy, MemoryAccess, MemoryRule};
use wattle_run::hostcall::runs::{EndedRun, ResumeRun, RunRef, RunService, StartRun};
use wattle_run::ports::BlobLinks;
use wattle_run::ports::store::{LeaseHolder, PruneStrategy, RunOptions};
use wattle_run::replay::{Against, replay_ports, replay_thread};
use wattle_run::time_travel::{CallRef, EditThread, ForkFrom, ForkInto, ForkThread, HistoryQuery};
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};
use wattle_suite::scripted::unavailable;
use wattle_suite::world::World;

use super::act::{Known, plugin};
use super::claim::Seen;

/// A world in which an example runs.
struct Stage {
    world: World,
    known: Known,
    graph: String,
    thread: Option<ThreadId>,
    seen: Seen,
    /// Nodes of the next version, until it is installed.
    nodes: Vec<(String, String)>,
    versions: usize,
}

/// Runs an example and returns the claims that do not hold.
pub(super) async fn play(graph: &str, script: &str) -> Vec<String> {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut stage: Option<Stage> = None;
    let (mut nodes, mut wrong) = (Vec::new(), Vec::new());
    for line in lines {
        match (node(line), &mut stage) {
            (Some(node), None) => nodes.push(node),
            (Some(node), Some(stage)) => stage.nodes.push(node),
            (None, stage) => {
                let stage = stage.get_or_insert_with(|| Stage::new(graph, script, &nodes));
                match line.strip_prefix("=> ") {
                    Some(claim) => wrong.extend(stage.seen.holds(claim, &stage.world).err()),
                    None => stage.command(line).await,
                }
            }
        }
    }
    wrong
}

/// Parses `name: actions`.
fn node(line: &str) -> Option<(String, String)> {
    let (name, acts) = line.split_once(": ")?;
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then(|| (name.to_owned(), acts.trim().to_owned()))
}

/// Parses the JSON at the beginning of a text, and returns it with the rest.
pub(super) fn json_and_rest(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text[values.byte_offset()..].trim()))
}

/// Parses the JSON at the beginning of a line of the page, which must have it.
fn json_of(text: &str) -> (Value, &str) {
    json_and_rest(text).unwrap_or_else(|| panic!("expected JSON: {text}"))
}

fn grants(script: &str) -> Grants {
    let in_doubt = match script {
        text if text.contains("when in doubt, ask") => InDoubtPolicy::Ask,
        text if text.contains("when in doubt, retry") => InDoubtPolicy::Retry,
        _ => InDoubtPolicy::Fail,
    };
    let memory = vec![MemoryRule { namespace: Vec::new(), access: MemoryAccess::ReadWrite }];
    Grants { in_doubt, memory, ..Grants::default() }
}

impl Stage {
    fn new(graph: &str, script: &str, nodes: &[(String, String)]) -> Self {
        let known = Arc::new(OnceLock::new());
        let memory = Arc::new(VolatileMemory::new());
        let world = World::with_memory(graph, plugin("1", nodes, &known), memory, grants(script));
        assert!(known.set(world.engine.clone()).is_ok(), "it was empty");
        let (graph, seen) = (graph.to_owned(), Seen::said("nothing"));
        Self { world, known, graph, thread: None, seen, nodes: Vec::new(), versions: 1 }
    }

    fn thread(&self) -> ThreadId {
        self.thread.clone().expect("a thread was started")
    }

    async fn command(&mut self, line: &str) {
        self.install();
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        self.seen = match verb {
            "start" => self.start(rest).await,
            "answer" => self.answer(rest).await,
            "resume" => self.resume(BTreeMap::new(), options(rest)).await,
            "fork" => self.fork(rest).await,
            "edit" => self.edit(rest).await,
            "history" => self.history().await,
            "verify" => self.verify().await,
            "replay" => self.replay().await,
            "migrate" => self.migrate().await,
            "prune" => self.prune().await,
            _ => self.arrange(line).await,
        };
    }

    /// Installs the nodes of a new version, if there are any.
    fn install(&mut self) {
        if self.nodes.is_empty() {
            return;
        }
        self.versions += 1;
        let nodes = std::mem::take(&mut self.nodes);
        let plugin = plugin(&self.versions.to_string(), &nodes, &self.known);
        self.world.install(&self.graph, plugin);
    }

    /// Executes a command on the environment of the thread.
    async fn arrange(&mut self, line: &str) -> Seen {
        match line {
            "kill the host" => self.world.crash().await,
            "the slow service hangs once" => self.world.net.hang_next(1),
            "the service fails once" => self.world.net.fail_next(unavailable()),
            "when in doubt, ask" | "when in doubt, retry" => {}
            other => {
                let time =
                    other.strip_suffix(" pass").and_then(|time| time.parse::<HumanDuration>().ok());
                let time = time.unwrap_or_else(|| panic!("unknown command: {other}"));
                self.world.clock.advance_ms(u32::try_from(time.as_ms()).unwrap());
                self.world.engine.sweep().await;
                let thread = self.world.engine.thread(&self.thread()).await.unwrap();
                return Seen::said(if thread.is_some() { "still there" } else { "gone" });
            }
        }
        self.seen.clone()
    }

    /// Executes `[again] INPUT [with OPTIONS] [for CONTEXT] [and EVENT]`.
    async fn start(&mut self, text: &str) -> Seen {
        let (again, text) = match text.strip_prefix("again ") {
            Some(text) => (self.thread.clone(), text),
            None => (None, text),
        };
        let (input, mut rest) = json_of(text);
        let mut request = self.world.request(again.as_ref(), input);
        loop {
            if let Some(text) = rest.strip_prefix("with ") {
                let (value, after) = json_of(text);
                request.options = serde_json::from_value(value).unwrap();
                rest = after;
            } else if let Some(text) = rest.strip_prefix("for ") {
                (request.context, rest) = json_of(text);
            } else {
                break;
            }
        }
        match rest {
            "" => self.run(request).await,
            happening => self.meanwhile(request, happening).await,
        }
    }

    async fn run(&mut self, request: StartRun) -> Seen {
        let run = match self.world.engine.start(request).await {
            Ok(run) => run,
            Err(failure) => return Seen::said(format!("refused {}", failure.code)),
        };
        self.thread = Some(run.thread.clone());
        self.ended(&run).await
    }

    async fn ended(&self, run: &RunRef) -> Seen {
        Seen::of(self.world.engine.wait(run).await)
    }

    /// Starts a run, and causes an event while it waits for the slow service.
    async fn meanwhile(&mut self, request: StartRun, happening: &str) -> Seen {
        self.world.net.hang_next(1);
        let run = self.world.engine.start(request).await.unwrap();
        self.thread = Some(run.thread.clone());
        self.world.net.hung().await;
        match happening {
            "and kill the host meanwhile" => {
                self.world.crash().await;
                assert_eq!(self.world.engine.recover().await, 1);
                self.ended(&run).await
            }
            "and cancel it meanwhile" => {
                self.world.engine.cancel(&run).await.unwrap();
                self.ended(&run).await
            }
            "and ask another host meanwhile" => {
                let again = self.world.request(Some(&run.thread), json!({}));
                let refused = self.beside("other").start(again).await.unwrap_err();
                self.world.engine.cancel(&run).await.unwrap();
                Seen::of(Err(refused))
            }
            other => panic!("unknown event: {other}"),
        }
    }

    /// Creates another engine on the same store.
    fn beside(&self, holder: &str) -> Engine {
        let holder = Some(LeaseHolder(holder.to_owned()));
        let config = EngineConfig { holder, ..EngineConfig::default() };
        Engine::new(self.world.engine.ports().clone(), self.world.engine.catalog().clone(), config)
    }

    /// Executes `[NODE] ANSWER`. Without a node it answers the only interrupt.
    async fn answer(&mut self, text: &str) -> Seen {
        if let Some((answer, "")) = json_and_rest(text) {
            return self
                .resume(BTreeMap::from([(String::new(), answer)]), Default::default())
                .await;
        }
        let (node, answer) = text.split_once(' ').expect("a node and an answer");
        let view = self.world.engine.thread(&self.thread()).await.unwrap().unwrap();
        let asked = view.interrupts.into_iter().find(|question| question.node.as_str() == node);
        let id = asked.map_or_else(|| "unknown".to_owned(), |question| question.id);
        self.resume(BTreeMap::from([(id, json_of(answer).0)]), Default::default()).await
    }

    async fn resume(&mut self, answers: BTreeMap<String, Value>, options: RunOptions) -> Seen {
        let request = ResumeRun {
            run: None,
            thread: self.thread(),
            answers,
            on_failure: Default::default(),
            app: None,
            tenant: None,
            options,
            principal: None,
        };
        self.finish(self.world.engine.resume(request).await).await
    }

    async fn finish(&self, run: Result<RunRef, Failure>) -> Seen {
        match run {
            Ok(run) => self.ended(&run).await,
            Err(failure) => Seen::of(Err::<EndedRun, _>(failure)),
        }
    }

    /// Executes `from N [on INPUT]`, or `from the model call of NODE as "ANSWER"`.
    async fn fork(&mut self, text: &str) -> Seen {
        let from = match text.strip_prefix("from the model call of ") {
            Some(text) => {
                let (node, said) = text.split_once(" as ").expect("a node and an answer");
                self.reworded(node, &json_of(said).0).await
            }
            None => at_checkpoint(text),
        };
        let request = ForkThread {
            run: None,
            thread: self.thread(),
            from,
            into: ForkInto::InPlace,
            app: None,
            tenant: None,
            options: RunOptions::default(),
            principal: None,
        };
        self.finish(self.world.engine.fork(request).await).await
    }

    async fn reworded(&self, node: &str, said: &Value) -> ForkFrom {
        let events = self.world.events(&self.thread()).await;
        let entry = events.into_iter().find_map(|event| match event.kind {
            EventKind::Called(called)
                if called.function == "llm.complete" && called.node.as_str() == node =>
            {
                Some((event.seq, called.result))
            }
            _ => None,
        });
        let (seq, answer) = entry.expect("the node called the model");
        let mut answer = answer.expect("the model answered");
        answer["parts"] = json!([{ "text": said }]);
        ForkFrom::Call { call: CallRef::Seq(seq), result: Ok(answer) }
    }

    /// Executes `as NODE WRITES`.
    async fn edit(&mut self, text: &str) -> Seen {
        let (node, writes) =
            text.strip_prefix("as ").and_then(|text| text.split_once(' ')).expect("a node");
        let Value::Object(fields) = json_of(writes).0 else { panic!("no writes: {writes}") };
        let writes = fields.into_iter().map(|(channel, value)| Write {
            channel: ChannelName::new(channel).unwrap(),
            value,
            overwrite: false,
        });
        let as_node = EditAs::Node(NodeName::new(node).unwrap());
        let request = EditThread {
            thread: self.thread(),
            app: None,
            graph: None,
            tenant: None,
            namespace: Namespace::root(),
            checkpoint: None,
            supersteps: vec![vec![Edit { as_node, writes: writes.collect() }]],
            metadata: BTreeMap::new(),
            principal: None,
        };
        Seen::edited(self.world.engine.edit(request).await)
    }

    async fn history(&self) -> Seen {
        let history = self.world.engine.history(&self.thread(), HistoryQuery::default()).await;
        Seen::history(&history.unwrap().items)
    }

    async fn verify(&self) -> Seen {
        self.world.engine.verify(&self.thread()).await.unwrap();
        Seen::said("sealed")
    }

    /// Replays the thread from its export, without a model and without a network.
    async fn replay(&self) -> Seen {
        let export =
            self.world.engine.export(&self.thread(), ExportParts::default()).await.unwrap();
        let lines: Vec<_> = export.try_collect().await.unwrap();
        let text = String::from_utf8(lines.concat()).unwrap();
        let ports = replay_ports(
            Arc::new(InMemoryStore::new()),
            Arc::new(VolatileMemory::new()),
            Arc::new(InMemoryBlobs::new()),
            BlobLinks::new(b"test"),
            Arc::new(self.world.clock.clone()),
        );
        let app = self.world.engine.catalog().apps().remove(0);
        let export = Export::read(&text).unwrap();
        let replayed = replay_thread(&export, app, ports, Against::Pinned).await.unwrap();
        Seen {
            what: "replayed".to_owned(),
            data: json!({ "calls": replayed.calls, "divergences": replayed.divergences.len() }),
            state: Value::Null,
        }
    }

    async fn migrate(&self) -> Seen {
        let request = MigrateThread {
            thread: self.thread(),
            app: None,
            tenant: None,
            options: MigrateOptions::default(),
            dry_run: false,
            principal: None,
        };
        let report = self.world.engine.migrate(&request).await.unwrap();
        Seen::said(if report.applied { "migrated" } else { "not migrated" })
    }

    async fn prune(&self) -> Seen {
        self.world.engine.prune(&self.thread(), PruneStrategy::KeepLatest).await.unwrap();
        Seen::said("pruned")
    }
}

/// Parses `with OPTIONS`, or returns the default options.
fn options(text: &str) -> RunOptions {
    let options = text.strip_prefix("with ").map(|text| json_of(text).0);
    options.map(|value| serde_json::from_value(value).unwrap()).unwrap_or_default()
}

/// Parses `from N [on INPUT]`.
fn at_checkpoint(text: &str) -> ForkFrom {
    let text = text.strip_prefix("from ").expect("a checkpoint");
    let (number, input) = text.split_once(" on ").unwrap_or((text, ""));
    let checkpoint = CheckpointId(number.parse().unwrap());
    ForkFrom::Checkpoint { checkpoint, input: json_and_rest(input).map(|(input, _)| input) }
}
