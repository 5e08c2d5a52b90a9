//! Forms of requests and answers that are put together where they are needed, for the document that
//! describes the server.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AnyOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};
use wattle_project::agent_server::document::Checkpoint;
use wattle_project::agent_server::mode::Mode;

use super::request::{Before, Modes};
use super::shape::{Assistant, Cron, FoundItem, Run, Thread, ThreadState};

/// Why a request is not answered.
#[derive(Debug, ToSchema)]
pub struct FaultDocument {
    /// What is wrong, and what to do.
    pub detail: String,
}

/// A document of which only some fields may be there, since a request can name those it wants.
fn part<T: ToSchema>() -> RefOr<Schema> {
    let mut schema = T::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object.required.clear();
    }
    schema
}

macro_rules! parts {
    ($($part:ident of $whole:ty),* $(,)?) => {$(
        #[doc = concat!("Fields of a [`", stringify!($whole), "`], those that were asked for.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $part;

        impl PartialSchema for $part {
            fn schema() -> RefOr<Schema> {
                part::<$whole>()
            }
        }

        impl ToSchema for $part {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                // It may be inside of itself.
                known::<$whole>(schemas);
            }
        }
    )*};
}

parts! {
    ThreadPart of Thread,
    ThreadStatePart of ThreadState,
    RunPart of Run,
    AssistantPart of Assistant,
    CronPart of Cron,
}

fn reference<T: ToSchema>() -> Ref {
    Ref::from_schema_name(T::name())
}

fn known<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

impl PartialSchema for Modes {
    fn schema() -> RefOr<Schema> {
        let several = ArrayBuilder::new().items(reference::<Mode>());
        OneOfBuilder::new()
            .item(reference::<Mode>())
            .item(several)
            .description(Some("One mode or a list of them."))
            .into()
    }
}

impl ToSchema for Modes {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        known::<Mode>(schemas);
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
        known::<Checkpoint>(schemas);
    }
}

/// Whether the server lives.
#[derive(Debug, ToSchema)]
pub struct Alive {
    /// It does.
    pub ok: bool,
    /// How other services stand; there are none.
    #[schema(value_type = Object)]
    pub services: Map<String, Value>,
}

/// What the server is and can do.
#[derive(Debug, ToSchema)]
pub struct Info {
    /// Its version.
    pub version: String,
    /// What it can do.
    pub flags: BTreeMap<String, bool>,
    /// What it runs on.
    pub host: BTreeMap<String, String>,
}

/// How many threads something was taken away from.
#[derive(Debug, ToSchema)]
pub struct Pruned {
    /// So many.
    pub pruned_count: usize,
}

/// What a thread takes in the store.
#[derive(Debug, ToSchema)]
pub struct Storage {
    /// The thread.
    pub thread_id: String,
    /// All that is kept of it, as stored.
    pub total_bytes: u64,
    /// The newest value of each channel as JSON.
    pub channels: BTreeMap<String, u64>,
}

/// The checkpoint that a change of a state made.
#[derive(Debug, ToSchema)]
pub struct StateUpdated {
    /// Where it is.
    pub checkpoint: Checkpoint,
    /// The same as other libraries keep it.
    pub configurable: Checkpoint,
    /// Its id.
    pub checkpoint_id: String,
}

/// Documents that were found.
#[derive(Debug, ToSchema)]
pub struct FoundItems {
    /// The best first.
    pub items: Vec<FoundItem>,
}

/// Namespaces that were found.
#[derive(Debug, ToSchema)]
pub struct FoundNamespaces {
    /// In order, each by its labels.
    pub namespaces: Vec<Vec<String>>,
}

/// Crons that are counted.
#[derive(Debug, ToSchema)]
pub struct CronCount {
    /// Only of this assistant.
    pub assistant_id: Option<String>,
    /// Only on this thread.
    pub thread_id: Option<String>,
    /// Only those that come, or do not.
    pub enabled: Option<bool>,
    /// All of these facts must be equal.
    pub metadata: Option<Map<String, Value>>,
}

/// One event of a stream.
#[derive(Debug, ToSchema)]
pub struct StreamedEvent {
    /// Its kind.
    pub event: String,
    /// What it says, as one line of JSON.
    pub data: String,
    /// What a client names to come back; the streams of failures have none.
    #[schema(required = false)]
    pub id: String,
}

/// A graph as it is drawn.
#[derive(Debug, ToSchema)]
pub struct Drawing {
    /// Its nodes, with its beginning and its end.
    pub nodes: Vec<DrawnNode>,
    /// The ways between them.
    pub edges: Vec<DrawnEdge>,
}

/// A node of a drawing.
#[derive(Debug, ToSchema)]
pub struct DrawnNode {
    /// Its name, behind those of the nodes that it is inside of.
    pub id: String,
    /// `runnable`, or `schema` for beginning and end.
    #[schema(pattern = "^(runnable|schema)$")]
    pub r#type: String,
    /// What it is: its name, as a text or in an object.
    pub data: Value,
}

/// A way of a drawing.
#[derive(Debug, ToSchema)]
pub struct DrawnEdge {
    /// From this node.
    pub source: String,
    /// To this one.
    pub target: String,
    /// Whether it is taken only at times.
    #[schema(required = false)]
    pub conditional: bool,
}

/// What runs of a graph take and give.
#[derive(Debug, ToSchema)]
pub struct GraphSchemas {
    /// The graph.
    pub graph_id: String,
    /// What it takes.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// What it gives.
    #[schema(value_type = Object)]
    pub output_schema: Value,
    /// What it works on.
    #[schema(value_type = Object)]
    pub state_schema: Value,
    /// Its settings: graphs here do not say which they have.
    #[schema(value_type = Option<Object>)]
    pub config_schema: Value,
    /// Its context: graphs here do not say which they have.
    #[schema(value_type = Option<Object>)]
    pub context_schema: Value,
}

/// A command of the streaming protocol.
#[derive(Debug, ToSchema)]
pub struct CommandDocument {
    /// The number that its answer names.
    pub id: u64,
    /// What is to be done, such as `run.start`.
    pub method: String,
    /// With what.
    pub params: Option<Value>,
}

/// The answer to a command.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum CommandAnswer {
    /// It was done.
    Done(CommandDone),
    /// It was not.
    Refused(CommandRefused),
}

/// A command was done.
#[derive(Debug, ToSchema)]
pub struct CommandDone {
    /// `success`.
    #[schema(pattern = "^success$")]
    pub r#type: String,
    /// The number of the command.
    pub id: u64,
    /// What it led to.
    pub result: Value,
    /// How far the thread was then.
    pub meta: CommandMeta,
}

/// How far a thread was.
#[derive(Debug, ToSchema)]
pub struct CommandMeta {
    /// Events up to this number led to the answer.
    pub applied_through_seq: u64,
}

/// A command was not done.
#[derive(Debug, ToSchema)]
pub struct CommandRefused {
    /// `error`.
    #[schema(pattern = "^error$")]
    pub r#type: String,
    /// The number of the command; `null` for what is none.
    pub id: Option<u64>,
    /// Why, in a word.
    pub error: String,
    /// Why, for people.
    pub message: String,
}
