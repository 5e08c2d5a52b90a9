//! OpenAPI schemas of JSON bodies that handlers build without a type of their own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AnyOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};
use wattle_api::openapi::push_schemas;
use wattle_project::agent_server::document::Checkpoint;
use wattle_project::agent_server::mode::Mode;

use super::request::{Before, Modes};
use super::response::{Assistant, Cron, FoundItem, Run, Thread, ThreadState};

/// The body of an error response.
#[derive(Debug, ToSchema)]
#[schema(as = FaultDocument)]
pub struct ErrorDocument {
    /// The error, and how to correct the request.
    pub detail: String,
}

/// Returns a schema in which no field is required, because a request can select fields.
fn partial<T: ToSchema>() -> RefOr<Schema> {
    let mut schema = T::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object.required.clear();
    }
    schema
}

macro_rules! partial_schemas {
    ($($part:ident of $whole:ty),* $(,)?) => {$(
        #[doc = concat!("The selected fields of a [`", stringify!($whole), "`].")]
        #[derive(Clone, Copy, Debug)]
        pub struct $part;

        impl PartialSchema for $part {
            fn schema() -> RefOr<Schema> {
                partial::<$whole>()
            }
        }

        impl ToSchema for $part {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                // The type may contain itself.
                push_schemas::<$whole>(schemas);
            }
        }
    )*};
}

partial_schemas! {
    ThreadPart of Thread,
    ThreadStatePart of ThreadState,
    RunPart of Run,
    AssistantPart of Assistant,
    CronPart of Cron,
}

fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

impl PartialSchema for Modes {
    fn schema() -> RefOr<Schema> {
        let several = ArrayBuilder::new().items(reference::<Mode>());
        OneOfBuilder::new()
            .item(reference::<Mode>())
            .item(several)
            .description(Some("One mode or an array of modes."))
            .into()
    }
}

impl ToSchema for Modes {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        push_schemas::<Mode>(schemas);
    }
}

impl PartialSchema for Before {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
        let config = ObjectBuilder::new()
            .property("configurable", reference::<Checkpoint>())
            .required("configurable");
        AnyOfBuilder::new()
            .item(text)
            .item(config)
            .item(reference::<Checkpoint>())
            .description(Some("A checkpoint by its id, by its configuration or by its address."))
            .into()
    }
}

impl ToSchema for Before {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        push_schemas::<Checkpoint>(schemas);
    }
}

/// The health of the server.
#[derive(Debug, ToSchema)]
pub struct Alive {
    /// Always `true`.
    pub ok: bool,
    /// Status of other services; always empty.
    #[schema(value_type = Object)]
    pub services: Map<String, Value>,
}

/// The version and the capabilities of the server.
#[derive(Debug, ToSchema)]
pub struct Info {
    /// Version of the server.
    pub version: String,
    /// Available capabilities by name.
    pub flags: BTreeMap<String, bool>,
    /// Name and version of the server software.
    pub host: BTreeMap<String, String>,
}

/// The result of a request to prune threads.
#[derive(Debug, ToSchema)]
pub struct Pruned {
    /// Number of threads that were pruned or deleted.
    pub pruned_count: usize,
}

/// The sizes of a thread in the store.
#[derive(Debug, ToSchema)]
pub struct Storage {
    /// Id of the thread.
    pub thread_id: String,
    /// Stored bytes of the thread.
    pub total_bytes: u64,
    /// Bytes of the newest value of each channel as JSON.
    pub channels: BTreeMap<String, u64>,
}

/// The checkpoint that an update of a state made.
#[derive(Debug, ToSchema)]
pub struct StateUpdated {
    /// Address of the checkpoint.
    pub checkpoint: Checkpoint,
    /// The same address under the key that other libraries use.
    pub configurable: Checkpoint,
    /// Id of the checkpoint.
    pub checkpoint_id: String,
}

/// Items that match a search.
#[derive(Debug, ToSchema)]
pub struct FoundItems {
    /// Matching items, best match first.
    pub items: Vec<FoundItem>,
}

/// Namespaces that match a search.
#[derive(Debug, ToSchema)]
pub struct FoundNamespaces {
    /// Sorted namespaces, each as its labels.
    pub namespaces: Vec<Vec<String>>,
}

/// A filter for crons to count.
#[derive(Debug, ToSchema)]
pub struct CronCount {
    /// Only crons of this assistant.
    pub assistant_id: Option<String>,
    /// Only crons on this thread.
    pub thread_id: Option<String>,
    /// Only enabled or only disabled crons.
    pub enabled: Option<bool>,
    /// Metadata that a cron must contain.
    pub metadata: Option<Map<String, Value>>,
}

/// One event of an event stream.
#[derive(Debug, ToSchema)]
pub struct StreamedEvent {
    /// Name of the event.
    pub event: String,
    /// Event data as JSON on one line.
    pub data: String,
    /// Id at which a client resumes the stream. Error events have none.
    #[schema(required = false)]
    pub id: String,
}

/// A graph to draw.
#[derive(Debug, ToSchema)]
pub struct Drawing {
    /// Nodes, including the start and the end node.
    pub nodes: Vec<DrawnNode>,
    /// Edges between the nodes.
    pub edges: Vec<DrawnEdge>,
}

/// A node of a drawing.
#[derive(Debug, ToSchema)]
pub struct DrawnNode {
    /// Name of the node, prefixed with the names of the nodes that contain it.
    pub id: String,
    /// `runnable`, or `schema` for the start and the end node.
    #[schema(pattern = "^(runnable|schema)$")]
    pub r#type: String,
    /// Name of the node, as a string or in an object with more data.
    pub data: Value,
}

/// An edge of a drawing.
#[derive(Debug, ToSchema)]
pub struct DrawnEdge {
    /// Node at which the edge starts.
    pub source: String,
    /// Node at which the edge ends.
    pub target: String,
    /// Whether the edge is conditional.
    #[schema(required = false)]
    pub conditional: bool,
}

/// JSON Schemas of a graph.
#[derive(Debug, ToSchema)]
pub struct GraphSchemas {
    /// Id of the graph.
    pub graph_id: String,
    /// Schema of the input of a run.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// Schema of the output of a run.
    #[schema(value_type = Object)]
    pub output_schema: Value,
    /// Schema of the state.
    #[schema(value_type = Object)]
    pub state_schema: Value,
    /// Schema of `config.configurable`, which is the run context. `null` if the graph declares
    /// none.
    #[schema(value_type = Option<Object>)]
    pub config_schema: Value,
    /// Schema of the run context. `null` if the graph declares none.
    #[schema(value_type = Option<Object>)]
    pub context_schema: Value,
}

/// A command of the streaming protocol.
#[derive(Debug, ToSchema)]
pub struct CommandDocument {
    /// Command id. The reply repeats the id.
    pub id: u64,
    /// Name of the command, such as `run.start`.
    pub method: String,
    /// Parameters of the command.
    pub params: Option<Value>,
}

/// The reply to a command.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum CommandAnswer {
    /// The command succeeded.
    Done(CommandDone),
    /// The command failed.
    Refused(CommandRefused),
}

/// The reply to a command that succeeded.
#[derive(Debug, ToSchema)]
pub struct CommandDone {
    /// `success`.
    #[schema(pattern = "^success$")]
    pub r#type: String,
    /// Id of the command.
    pub id: u64,
    /// Result of the command.
    pub result: Value,
    /// Position in the thread's log up to which the result includes events.
    pub meta: CommandMeta,
}

/// The events of a thread that the result of a command includes.
#[derive(Debug, ToSchema)]
pub struct CommandMeta {
    /// Number of the last event that the result includes.
    pub applied_through_seq: u64,
}

/// The reply to a command that failed.
#[derive(Debug, ToSchema)]
pub struct CommandRefused {
    /// `error`.
    #[schema(pattern = "^error$")]
    pub r#type: String,
    /// Id of the command; `null` if the message is not a command.
    pub id: Option<u64>,
    /// Error code.
    pub error: String,
    /// Human-readable message.
    pub message: String,
}
