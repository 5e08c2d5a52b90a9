//! The OpenAPI description of one endpoint, from the types that `#[handler]` declares.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Place of the schemas in an OpenAPI document.
pub(super) const SCHEMAS: &str = "/components/schemas";

/// Key of the response for all statuses without one of their own.
const DEFAULT: &str = "default";

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The generators of the schemas of all endpoints.
#[derive(Debug)]
pub(super) struct Generators {
    pub(super) requests: SchemaGenerator,
    pub(super) responses: SchemaGenerator,
}

impl Generators {
    pub(super) fn new() -> Self {
        let generator = |settings: SchemaSettings| {
            let settings = settings.with(|settings| {
                settings.definitions_path = SCHEMAS.into();
                settings.meta_schema = None;
            });
            settings.into_generator()
        };
        Self {
            requests: generator(SchemaSettings::draft2020_12().for_deserialize()),
            responses: generator(SchemaSettings::draft2020_12().for_serialize()),
        }
    }
}

/// The description of an endpoint, to which `#[handler]` adds the declared types.
#[derive(Debug)]
pub struct Operation<'g> {
    generators: &'g mut Generators,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// Content of the responses by status.
    responses: BTreeMap<String, Map<String, Value>>,
}

impl<'g> Operation<'g> {
    /// Creates the description of an endpoint with a path.
    pub(super) fn new(path: &str, generators: &'g mut Generators) -> Self {
        let text = json!({ "type": "string" });
        let parameters = path_parameters(path).map(|name| parameter(name, "path", true, &text));
        let parameters = parameters.collect();
        Self { generators, parameters, body: None, responses: BTreeMap::new() }
    }

    /// Adds a parameter of the query string.
    pub fn query<T: JsonSchema>(&mut self, name: &str, is_required: bool) {
        let schema = Value::from(self.generators.requests.subschema_for::<T>());
        self.parameters.push(parameter(name, "query", is_required, &schema));
    }

    /// Sets the JSON body of requests.
    pub fn body<T: JsonSchema>(&mut self, is_required: bool) {
        let schema = Value::from(self.generators.requests.subschema_for::<T>());
        let content = json!({ JSON: { "schema": schema } });
        self.body = Some(json!({ "required": is_required, "content": content }));
    }

    /// Adds a response with a JSON body.
    pub fn returns<T: JsonSchema>(&mut self, status: u16) {
        let schema = self.response_schema::<T>();
        self.add_content(&status.to_string(), JSON, &schema);
    }

    /// Adds a response without a body.
    pub fn returns_nothing(&mut self, status: u16) {
        self.responses.entry(status.to_string()).or_default();
    }

    /// Adds a response with status 200 and a stream of events. The schema is that of one event.
    pub fn events<T: JsonSchema>(&mut self) {
        let schema = self.response_schema::<T>();
        self.add_content("200", EVENTS, &schema);
    }

    /// Adds a response with status 200 and a body of bytes.
    pub fn bytes(&mut self, media_type: &str) {
        self.add_content("200", media_type, &json!({ "type": "string" }));
    }

    /// Sets the JSON body of all other responses.
    pub fn error<T: JsonSchema>(&mut self) {
        let schema = self.response_schema::<T>();
        self.add_content(DEFAULT, JSON, &schema);
    }

    fn response_schema<T: JsonSchema>(&mut self) -> Value {
        Value::from(self.generators.responses.subschema_for::<T>())
    }

    fn add_content(&mut self, status: &str, media_type: &str, schema: &Value) {
        let content = self.responses.entry(status.to_owned()).or_default();
        content.insert(media_type.to_owned(), json!({ "schema": schema }));
    }

    /// Returns the operation object of OpenAPI.
    pub(super) fn into_object(self, doc: &str) -> Value {
        let (summary, description) = doc.split_once("\n\n").unwrap_or((doc, ""));
        let mut object = Map::new();
        if !summary.is_empty() {
            object.insert("summary".to_owned(), summary.replace('\n', " ").into());
        }
        if !description.is_empty() {
            object.insert("description".to_owned(), description.into());
        }
        if !self.parameters.is_empty() {
            object.insert("parameters".to_owned(), self.parameters.into());
        }
        if let Some(body) = self.body {
            object.insert("requestBody".to_owned(), body);
        }
        object.insert("responses".to_owned(), responses(self.responses));
        Value::Object(object)
    }
}

fn responses(contents: BTreeMap<String, Map<String, Value>>) -> Value {
    if contents.is_empty() {
        // OpenAPI demands a response.
        return json!({ DEFAULT: { "description": "Response" } });
    }
    let response = |(status, content): (String, Map<String, Value>)| {
        let mut response = json!({ "description": description(&status) });
        if !content.is_empty() {
            response["content"] = Value::Object(content);
        }
        (status, response)
    };
    Value::Object(contents.into_iter().map(response).collect())
}

/// Returns the description of a response by the class of its status.
fn description(status: &str) -> &'static str {
    match status.as_bytes().first() {
        Some(b'1') => "Informational",
        Some(b'2') => "Success",
        Some(b'3') => "Redirection",
        _ => "Error",
    }
}

fn parameter(name: &str, place: &str, is_required: bool, schema: &Value) -> Value {
    json!({ "name": name, "in": place, "required": is_required, "schema": schema })
}

/// Returns the names of the parameters in a path: `{name}`, or `{*name}` for the rest of the path.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    let names = path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| name.trim_start_matches('*'))
}
