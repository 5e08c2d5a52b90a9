//! Tests of the fold from events to state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::event::{Answered, Checkpointed, Event, EventKind, Reopened};
use crate::graph::Graph;
use crate::id::{CheckpointId, InterruptId, RunId};
use crate::interrupt::{self, AnswerError, Interrupt};
use crate::lineage::Lineage;
use crate::plan::{Plan, plan};
use crate::schema::{Formats, Schema, SchemaError, SchemaSource};
use crate::testing::{
    ScriptedResult, event, finished, graph, interrupt_raised, ready, start, thread,
};

/// A schema source without a cache.
struct Uncached;

impl SchemaSource for Uncached {
    fn compiled(&self, schema: &Value, formats: Formats) -> Result<Arc<Schema>, SchemaError> {
        let compiled = match formats {
            Formats::OfDraft => Schema::compile(schema),
            Formats::Enforced => Schema::compile_with_formats(schema),
        };
        compiled.map(Arc::new)
    }
}

fn match_answers(
    open: &[&Interrupt],
    answers: &BTreeMap<String, Value>,
) -> Result<Vec<Answered>, AnswerError> {
    interrupt::match_answers(open, answers, &Uncached)
}

fn two() -> (Graph, Lineage, [crate::plan::Task; 2]) {
    let graph = graph("[graphs.g]\nentry = ['a', 'b']\nnodes = { a = {}, b = {} }");
    let lineage = start(&graph, &json!({})).unwrap();
    let tasks = ready(&graph, &lineage).try_into().expect("two tasks");
    (graph, lineage, tasks)
}

fn answer(question: &crate::event::InterruptRaised, answer: Value) -> EventKind {
    let (interrupt, task) = (question.interrupt.clone(), question.task.clone());
    EventKind::Answered(Answered { interrupt, task, answer, principal: None })
}

#[test]
fn task_with_a_pending_interrupt_waits() {
    let (graph, mut lineage, [a, b]) = two();
    let question = interrupt_raised(&a.id, "a", 0);
    lineage.apply(&event(EventKind::InterruptRaised(question.clone())));
    let Plan::Tasks { all, runnable, waiting } = plan(&graph, &thread(), &lineage, 1) else {
        panic!("tasks are left")
    };
    assert_eq!((all.len(), waiting), (2, vec![a.id.clone()]));
    assert_eq!(runnable.iter().map(|task| &task.id).collect::<Vec<_>>(), [&b.id]);

    lineage.apply(&event(answer(&question, json!("yes"))));
    lineage.apply(&event(answer(&question, json!("too late"))));
    lineage.apply(&event(EventKind::InterruptRaised(question.clone())));
    assert_eq!(lineage.answer_to(&question.interrupt), Some(&json!("yes")));
    assert_eq!(ready(&graph, &lineage).len(), 2);
}

#[test]
fn only_the_first_end_of_a_task_has_an_effect() {
    let (_, mut lineage, [a, _]) = two();
    let base = lineage.checkpoint.meta.id;
    lineage.apply(&finished(&a, base, ScriptedResult::write("x", 1)));
    let first = lineage.clone();
    lineage.apply(&finished(&a, base, ScriptedResult::write("x", 2)));
    lineage.apply(&finished(&a, CheckpointId(9), ScriptedResult::write("x", 3)));
    assert_eq!(lineage, first);
}

#[test]
fn finished_task_of_another_checkpoint_has_no_effect() {
    let (_, mut lineage, [a, _]) = two();
    let before = lineage.clone();
    lineage.apply(&finished(&a, CheckpointId(9), ScriptedResult::write("x", 1)));
    assert_eq!(lineage, before);
}

#[test]
fn a_reopened_interrupt_loses_its_answer_and_later_results() {
    let (graph, mut lineage, [a, b]) = two();
    let base = lineage.checkpoint.meta.id;
    let question = interrupt_raised(&a.id, "a", 1);
    lineage.apply(&finished(&b, base, ScriptedResult::default()));
    lineage.apply(&event(EventKind::InterruptRaised(question.clone())));
    let before = lineage.clone();
    lineage.apply(&event(answer(&question, json!(true))));
    lineage.apply(&finished(&a, base, ScriptedResult::default()));
    let next = crate::step::advance(&graph, &lineage, &BTreeMap::new(), crate::testing::at(2));
    lineage.apply(&event(EventKind::Checkpointed(Checkpointed::from(&next.unwrap().meta))));
    let elsewhere = interrupt_raised(&a.id, "later", 7);
    lineage.apply(&event(EventKind::InterruptRaised(elsewhere)));
    lineage.apply(&event(EventKind::Reopened(Reopened {
        to: base,
        interrupts: vec![question.interrupt.clone()],
        tasks: Vec::new(),
        failure: None,
    })));
    assert_eq!(lineage, before);
}

#[test]
fn answers_match_interrupts_by_id() {
    let (_, mut lineage, [a, b]) = two();
    let mut first = interrupt_raised(&a.id, "a", 0);
    first.response_schema = Some(json!({ "type": "boolean" }));
    let second = interrupt_raised(&b.id, "b", 0);
    let answers = |pairs: &[(&str, Value)]| -> BTreeMap<String, Value> {
        pairs.iter().map(|(id, value)| ((*id).to_owned(), value.clone())).collect()
    };
    assert_eq!(
        match_answers(&lineage.pending_interrupts(), &answers(&[])),
        Err(AnswerError::Empty)
    );
    assert_eq!(
        match_answers(&lineage.pending_interrupts(), &answers(&[("", json!(1))])),
        Err(AnswerError::NonePending)
    );
    lineage.apply(&event(EventKind::InterruptRaised(first.clone())));
    let id = first.interrupt.as_str();
    let matched =
        match_answers(&lineage.pending_interrupts(), &answers(&[("", json!(true))])).unwrap();
    assert_eq!((&matched[0].interrupt, &matched[0].task), (&first.interrupt, &a.id));
    let both = answers(&[("", json!(true)), (id, json!(true))]);
    assert!(matches!(
        match_answers(&lineage.pending_interrupts(), &both),
        Err(AnswerError::Duplicate { .. })
    ));
    let wrong = match_answers(&lineage.pending_interrupts(), &answers(&[(id, json!("yes"))]));
    assert!(matches!(wrong, Err(AnswerError::SchemaMismatch { .. })));
    lineage.apply(&event(EventKind::InterruptRaised(second)));
    let vague = match_answers(&lineage.pending_interrupts(), &answers(&[("", json!(true))]));
    assert!(matches!(vague, Err(AnswerError::Ambiguous { pending }) if pending.len() == 2));
    assert_eq!(
        match_answers(&lineage.pending_interrupts(), &answers(&[(id, json!(true))])).unwrap().len(),
        1
    );
    let named = answers(&[("", json!({ id: true }))]);
    let named = match_answers(&lineage.pending_interrupts(), &named).unwrap();
    assert_eq!((named.len(), &named[0].answer), (1, &json!(true)), "the value names its interrupt");
    let stale = "0".repeat(32);
    let unnamed = answers(&[("", json!({ &stale: true }))]);
    assert_eq!(
        match_answers(&lineage.pending_interrupts(), &unnamed),
        Err(AnswerError::NotPending { id: stale })
    );
    let unknown = match_answers(&lineage.pending_interrupts(), &answers(&[("x", json!(1))]));
    assert_eq!(unknown, Err(AnswerError::NotPending { id: "x".to_owned() }));
}

/// Returns the event of elicitation round `number` of an MCP server.
fn round(task: &crate::plan::Task, call: u32, number: u32) -> crate::event::InterruptRaised {
    let elicited = json!({ "round": number, "digest": "0".repeat(64), "server": "s", "tool": "t",
        "asked": { "questions": {} } });
    let elicited = serde_json::from_value(elicited).unwrap();
    let interrupt = InterruptId::elicited(&task.id, &[], call, number);
    crate::event::InterruptRaised { interrupt, elicited, ..interrupt_raised(&task.id, "a", call) }
}

#[test]
fn a_reopened_interrupt_discards_later_interrupts_of_its_task() {
    let (_, mut lineage, [a, b]) = two();
    let base = lineage.checkpoint.meta.id;
    let second = |kind| Event { run: RunId::new("second").unwrap(), ..event(kind) };
    // Two concurrent calls have raised interrupts. After the answer to one of them, its call raises
    // further interrupts.
    let (first, beside) = (round(&a, 0, 0), round(&a, 1, 0));
    for question in [&first, &beside] {
        lineage.apply(&event(EventKind::InterruptRaised(question.clone())));
    }
    lineage.apply(&event(answer(&beside, json!("no"))));
    lineage.apply(&second(answer(&first, json!("yes"))));
    let other = interrupt_raised(&b.id, "b", 0);
    for question in [&round(&a, 0, 1), &round(&a, 2, 0), &interrupt_raised(&a.id, "a", 3), &other] {
        lineage.apply(&second(EventKind::InterruptRaised(question.clone())));
    }
    lineage.apply(&second(EventKind::Reopened(Reopened {
        to: base,
        interrupts: vec![first.interrupt.clone()],
        tasks: Vec::new(),
        failure: None,
    })));
    assert_eq!(lineage.answer_to(&beside.interrupt), Some(&json!("no")));
    let open = lineage.pending_interrupts();
    let open: BTreeSet<&InterruptId> = open.iter().map(|it| &it.raised.interrupt).collect();
    assert_eq!(open, BTreeSet::from([&first.interrupt, &other.interrupt]));
}

#[test]
fn elicited_answers_must_match_their_format() {
    let (_, empty, [a, _]) = two();
    for (mut question, is_taken) in
        [(interrupt_raised(&a.id, "a", 0), true), (round(&a, 0, 0), false)]
    {
        let mut lineage = empty.clone();
        question.response_schema = Some(json!({ "format": "email" }));
        lineage.apply(&event(EventKind::InterruptRaised(question)));
        let answers = BTreeMap::from([(String::new(), json!("jane"))]);
        assert_eq!(match_answers(&lineage.pending_interrupts(), &answers).is_ok(), is_taken);
    }
}
