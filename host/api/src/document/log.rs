//! JSON bodies of the log endpoint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use wattle_graph::event::Event;
use wattle_project::outline::EventOutline;

use crate::openapi::push_schemas;

/// A page of the log of a thread.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogPage {
    /// Events of the page that the request selects, oldest first. The list can be empty although
    /// events follow.
    #[schema(value_type = Vec<LogItemDocument>)]
    pub items: LogItems,
    /// The value of `after` for the next page; absent if the page reaches the newest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
    /// Sequence number of the newest event of the thread; 0 without events. A stream of events
    /// continues after it.
    pub last_seq: u64,
}

/// The items of a page. Events are serialized as the log has them.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum LogItems {
    /// Events in full.
    Events(Vec<Event>),
    /// Outlines of events.
    Outlines(Vec<EventOutline>),
}

/// The schema of an item of a page.
pub struct LogItemDocument;

impl PartialSchema for LogItemDocument {
    fn schema() -> RefOr<Schema> {
        // `oneOf` does not fit, because an event has the fields of its outline, so some events
        // match both schemas.
        AnyOfBuilder::new()
            .description(Some(
                "An outline if the request has `outline=true`, else the event in full.",
            ))
            .item(Ref::from_schema_name(EventOutline::name()))
            .item(Ref::from_schema_name(EventDocument::name()))
            .into()
    }
}

impl ToSchema for LogItemDocument {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        push_schemas::<EventOutline>(schemas);
        push_schemas::<EventDocument>(schemas);
    }
}

/// An event. `type` determines the other fields. The description of the event stream lists the
/// fields of each type.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EventDocument {
    /// Sequence number of the event in the log of the thread.
    pub seq: u64,
    /// Time of the event, in milliseconds since 1970.
    pub at_ms: i64,
    /// Run of the event.
    pub run: String,
    /// Namespace of the subgraph; absent for the root graph.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Type of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// Fields of the type.
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}
