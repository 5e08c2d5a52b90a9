//! Tests of the guarantees of all projections.

use std::fmt::Debug;

use proptest::prelude::{ProptestConfig, proptest};
use serde_json::json;
use wattle_graph::event::{Event, RunStatus};

use super::{EventState, NeededState, Projection};
use crate::ag_ui::AgUiProjection;
use crate::agent_server::mode::Mode;
use crate::agent_server::sample::{RUNS, Sample, context, thread_info};
use crate::agent_server::v1::V1;
use crate::agent_server::v2::{Subscription, V2};
use crate::ai_sdk::AiSdkProjection;
use crate::sample::{checkpoint, cut_and_recovered, log, thread, two_turns};
use crate::spans::{Route, Run, SpanBuilder, View};
use crate::trace::Tracer;

/// All stream modes of a run.
const MODES: [Mode; 9] = [
    Mode::Values,
    Mode::Updates,
    Mode::Custom,
    Mode::Tasks,
    Mode::Checkpoints,
    Mode::Debug,
    Mode::Events,
    Mode::Messages,
    Mode::MessagesTuple,
];

/// All channels of a thread.
const CHANNELS: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "tasks",
    "checkpoints",
    "custom",
];

/// A log with its states, and the positions at which the tests clone a projection.
struct Log<'l> {
    events: &'l [Event],
    /// Returns the state that an event needs.
    read: &'l dyn Fn(NeededState, &Event) -> EventState,
    /// Numbers of events after which the tests clone the projection and continue with the clone.
    cuts: Vec<usize>,
}

impl Log<'_> {
    /// Checks all projections. The log must be a whole run, or end with a whole run.
    fn check(&self) {
        let run = &self.events[self.events.len() - 1].run;
        self.check_one(true, || AiSdkProjection::new([]), drop);
        self.check_one(true, || AgUiProjection::new(thread(), []), drop);
        self.check_one(true, || V1::new(MODES.into(), true, context(run.as_str())), drop);
        let channels = CHANNELS.map(str::to_owned);
        let subscription = Subscription::new(&channels, Vec::new(), None).unwrap();
        let v2 = || V2::new(subscription.clone(), thread_info(), "agent".to_owned());
        self.check_one(false, v2, drop);
        self.check_one(false, Tracer::default, |tracer: Tracer| tracer.finish(&thread()));
        let shown = Run {
            app: &"app".parse().unwrap(),
            graph: &"g".parse().unwrap(),
            thread: &thread(),
            run,
            tenant: None,
            status: RunStatus::Completed,
            failure: None,
            truncated: false,
            input: None,
            output: None,
        };
        let route = |_: &str| -> Option<Route> { None };
        let view = View { content: true, route: &route };
        self.check_one(false, || SpanBuilder::new(&shown, &view), SpanBuilder::finish);
    }

    /// Checks that the outputs and the result of a projection depend only on the log. `ends` is the
    /// expected [`Projection::is_over`] after the log.
    fn check_one<P, R>(&self, ends: bool, new: impl Fn() -> P, finish: impl Fn(P) -> R)
    where
        P: Projection + Clone,
        P::Output: Debug + Default + PartialEq,
        R: Debug + PartialEq,
    {
        let mut whole = new();
        let outputs = self.apply(&mut whole, self.events);
        let result = finish(whole.clone());
        for &cut in &self.cuts {
            let (first, rest) = self.events.split_at(cut);
            let mut original = new();
            let mut seen = self.apply(&mut original, first);
            let mut copy = original.clone();
            seen.extend(self.apply(&mut copy, rest));
            assert_eq!(seen, outputs, "cut after {cut} events");
            assert_eq!(finish(copy), result, "cut after {cut} events");
            // The clone did not change the original.
            assert_eq!(self.apply(&mut original, rest), outputs[cut..]);
        }
        assert_eq!(whole.is_over(), ends);
        if ends {
            for event in self.events {
                assert_eq!(whole.needs(event), None);
                assert_eq!(whole.apply(event, &EventState::default()), P::Output::default());
            }
            assert_eq!(finish(whole), result);
        }
    }

    fn apply<P: Projection>(&self, projection: &mut P, events: &[Event]) -> Vec<P::Output> {
        let apply = |event: &Event| {
            let state = projection.needs(event).map(|need| (self.read)(need, event));
            projection.apply(event, &state.unwrap_or_default())
        };
        events.iter().map(apply).collect()
    }
}

/// Returns the events with sequence numbers from 1.
fn numbered(mut events: Vec<Event>) -> Vec<Event> {
    for (event, seq) in events.iter_mut().zip(1..) {
        event.seq = seq;
    }
    events
}

/// Returns the same checkpoint for all events.
fn known_state(_: NeededState, _: &Event) -> EventState {
    let checkpoint = Some(checkpoint(json!({ "messages": [] })));
    EventState { checkpoint, ..EventState::default() }
}

#[test]
fn every_projection_of_a_thread_is_a_function_of_its_log() {
    let thread = Sample::whole();
    let read = |need: NeededState, event: &Event| {
        // The first event of a run that continues also gets the events since the start checkpoint.
        let is_start = need == NeededState::Start && event.run.as_str() == RUNS[1];
        let before = thread.events.iter().filter(|before| is_start && before.seq < event.seq);
        EventState { before: before.cloned().collect(), ..thread.read(Some(need), event) }
    };
    let cuts = (0..=thread.events.len()).collect();
    Log { events: &thread.events, read: &read, cuts }.check();
}

#[test]
fn every_projection_of_a_run_is_a_function_of_its_log() {
    for events in [two_turns(), cut_and_recovered()] {
        let events = numbered(events);
        let cuts = (0..=events.len()).collect();
        Log { events: &events, read: &known_state, cuts }.check();
    }
}

proptest! {
    // Each case runs all projections, so the test has fewer cases than the default.
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_projection_is_a_function_of_any_generated_log(events in log(), cut in 0..60_usize) {
        let events = numbered(events);
        let cuts = vec![cut.min(events.len())];
        Log { events: &events, read: &known_state, cuts }.check();
    }
}
