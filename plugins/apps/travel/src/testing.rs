//! Test support that several modules share.

use std::collections::HashMap;

use wattle_plugin::llm::{RouteInfo, Task};
use wattle_plugin::params;
use wattle_plugin::prelude::ToolOutput;
use wattle_plugin::sql::{Rows, Value};
use wattle_plugin::testing::{FakeHost, SqlAnswer, Statement};

/// Adds a route with two models for a task.
pub(crate) fn route(host: FakeHost, task: Task) -> FakeHost {
    let info = RouteInfo {
        provider: "google".to_owned(),
        model: format!("{}-0", task.name()),
        has_fallback: true,
        ..RouteInfo::default()
    };
    host.route(task.name(), info)
}

/// Adds a route with two image models.
pub(crate) fn image_route(host: FakeHost) -> FakeHost {
    host.route("handbook_image", RouteInfo { has_fallback: true, ..RouteInfo::default() })
}

/// Returns the value that a tool writes to a channel.
pub(crate) fn update<'a>(output: &'a ToolOutput, channel: &str) -> &'a serde_json::Value {
    &output.updates.iter().find(|update| update.channel == channel).unwrap().value
}

/// Adds the tables of the geocoder.
pub(crate) fn geocode_tables(host: FakeHost) -> FakeHost {
    let mut tables = GeocodeTables::default();
    host.sql(move |statement| Ok(tables.answer(statement)))
}

#[derive(Default)]
struct GeocodeTables {
    cache: HashMap<String, Vec<Value>>,
    turn_ms: Option<i64>,
}

impl GeocodeTables {
    fn answer(&mut self, statement: &Statement) -> SqlAnswer {
        let values = &statement.parameters;
        match statement.text.split_whitespace().next() {
            Some("SELECT") => {
                let row = self.cache.get(text(&values[0])).cloned();
                let rows = row.into_iter().collect();
                Rows::new(["lat", "lng", "found", "fetched_ms"], rows).into()
            }
            _ if statement.text.contains("geocode_turn") => self.turn(values),
            _ => {
                self.cache.insert(text(&values[0]).to_owned(), values[1..].to_vec());
                SqlAnswer::affected(1)
            }
        }
    }

    fn turn(&mut self, values: &[Value]) -> SqlAnswer {
        let (now, interval, longest) = (number(&values[0]), number(&values[1]), number(&values[2]));
        let next = match self.turn_ms {
            Some(last) if last <= now + longest => (last + interval).max(now),
            _ => now,
        };
        let is_free = next <= now + longest;
        self.turn_ms = if is_free { Some(next) } else { self.turn_ms };
        let rows = is_free.then(|| params![next]).into_iter().collect();
        Rows::new(["at_ms"], rows).into()
    }
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}
