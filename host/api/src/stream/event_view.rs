//! The view of a client on a log: which types of events the client gets, and whether as outlines.

use std::sync::Arc;

use wattle_graph::event::{Event, EventKind};
use wattle_graph::failure::code;
use wattle_project::outline::{EventOutline, EventOutlineKind};
use wattle_run::meter::model_usage::call_cost;

use crate::problem::Problem;
use crate::state::ConfiguredModels;

/// The types of events that a client gets, and their form. By default all events in full.
#[derive(Clone, Debug, Default)]
pub struct EventView {
    /// Names of types; all types if `None`.
    types: Option<Vec<&'static str>>,
    is_outline: bool,
    /// The models with the prices from which outlines have costs; no costs if `None`.
    models: Option<Arc<ConfiguredModels>>,
}

impl EventView {
    /// Creates a view from the parameters of a request: names of types, separated by commas, and
    /// true for outlines.
    ///
    /// # Errors
    ///
    /// `invalid` if no event has one of the names.
    pub fn new(types: Option<&str>, is_outline: bool) -> Result<Self, Problem> {
        let types =
            types.map(|types| types.split(',').map(find_type).collect::<Result<Vec<_>, _>>());
        let types = types.transpose()?;
        Ok(Self { types, is_outline, models: None })
    }

    /// Sets the models with the prices from which outlines have costs.
    pub fn with_models(self, models: Arc<ConfiguredModels>) -> Self {
        Self { models: Some(models), ..self }
    }

    /// Returns true if the client gets events of this kind.
    pub fn includes(&self, kind: &EventKind) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(&kind.name()))
    }

    /// Returns true if the client gets outlines.
    pub fn is_outline(&self) -> bool {
        self.is_outline
    }

    /// Returns the outline of an event, with the cost of a call.
    pub fn outline(&self, event: &Event) -> EventOutline {
        let mut outline = EventOutline::from(event);
        if let (EventOutlineKind::Called { cost, .. }, EventKind::Called(called), Some(models)) =
            (&mut outline.kind, &event.kind, &self.models)
        {
            *cost = call_cost(called, &models.prices);
        }
        outline
    }

    /// Returns an event as JSON.
    ///
    /// # Errors
    ///
    /// The errors of the serializer.
    pub fn json(&self, event: &Event) -> serde_json::Result<String> {
        if self.is_outline {
            serde_json::to_string(&self.outline(event))
        } else {
            serde_json::to_string(&event.shown())
        }
    }
}

fn find_type(name: &str) -> Result<&'static str, Problem> {
    let name = name.trim();
    EventKind::NAMES.iter().copied().find(|known| *known == name).ok_or_else(|| {
        let known = EventKind::NAMES.join(", ");
        let detail = format!("`types` has the unknown event type `{name}`; known types: {known}");
        Problem::new(code::INVALID, detail)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event() -> Event {
        let event = json!({ "seq": 1, "at_ms": 0, "run": "r", "type": "custom", "task": "t",
            "node": "n", "name": "x", "data": [1] });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn types_are_selected_by_name() {
        let event = event();
        for (types, is_included) in [
            (None, true),
            (Some("custom"), true),
            (Some("called, custom"), true),
            (Some("called"), false),
        ] {
            let view = EventView::new(types, false).unwrap();
            assert_eq!(view.includes(&event.kind), is_included, "{types:?}");
        }
    }

    #[test]
    fn error_for_an_unknown_type_lists_the_known_types() {
        for types in ["called,other", "", "called,", "Called"] {
            let problem = EventView::new(Some(types), false).unwrap_err();
            assert_eq!(problem.code, code::INVALID, "{types}");
            assert!(problem.detail.contains("run_started, run_ended"), "{}", problem.detail);
        }
    }

    #[test]
    fn outline_replaces_the_event() {
        let data = |is_outline| {
            let json = EventView::new(None, is_outline).unwrap().json(&event()).unwrap();
            serde_json::from_str::<Value>(&json).unwrap()["data"].clone()
        };
        assert_eq!(data(false), json!([1]));
        assert_eq!(data(true), json!({ "bytes": 3, "value": [1] }));
    }
}
