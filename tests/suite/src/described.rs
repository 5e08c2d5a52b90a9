//! Checks that responses of applications are as their `openapi.json` describes them.
//!
//! While an application is [`registered`](Apps::at), each response to an [`Exchange`] with one of
//! its endpoints is compared with the description: the status, the content type, the JSON body, and
//! each event of a complete event stream. A difference fails the test.
//!
//! The host responds to some requests itself, such as those that are too large or have no key.
//! These responses are problems (`application/problem+json`), and no application describes them.
//! The files of a page are outside of the paths that an application describes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use wattle::config::Config;
use wattle_graph::schema::Schema;

use crate::event_stream::blocks;

/// Content type of JSON documents.
const JSON: &str = "application/json";

/// Content type of event streams.
const EVENTS: &str = "text/event-stream";

/// Content type of the host's own responses to requests for an application.
const PROBLEM: &str = "application/problem+json";

/// Paths below which the main address serves applications by their name.
const BY_NAME: &str = "/apps/";

/// Paths of the host, below which no mounted application serves.
const OF_HOST: &str = "/api/v1/";

/// Maximum number of differences in a message.
const DIFFERENCES: usize = 5;

/// An application with a description.
struct App {
    name: String,
    /// The path at which the endpoints are mounted in addition to that of the name.
    mount: Option<String>,
    description: Arc<Description>,
}

/// The applications of a configuration that have an `openapi.json`.
pub struct Apps(Vec<App>);

/// The registration of applications at an address. It ends when this value is dropped, or when
/// others are registered at the address.
pub struct Registration {
    authority: String,
    apps: Arc<Vec<App>>,
}

/// The registered applications by host and port.
static REGISTERED: Mutex<BTreeMap<String, Arc<Vec<App>>>> = Mutex::new(BTreeMap::new());

/// The descriptions of this process by file, each with its compiled schemas.
static DESCRIPTIONS: Mutex<BTreeMap<PathBuf, Arc<Description>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Apps {
    /// Returns the applications of a configuration whose folders have an `openapi.json`.
    pub fn of(config: &Config) -> Self {
        let apps = config.apps.iter().filter_map(|(name, app)| {
            let file = app.path.as_ref()?.join("openapi.json");
            let description = Description::of(&file)?;
            Some(App { name: name.to_string(), mount: app.mount.clone(), description })
        });
        Self(apps.collect())
    }

    /// Registers the applications at the address of a server.
    ///
    /// # Panics
    ///
    /// If the address is not a URL.
    pub fn at(self, url: &str) -> Registration {
        let url = Url::parse(url).expect("the URL of a server");
        let (authority, apps) = (url.authority().to_owned(), Arc::new(self.0));
        locked(&REGISTERED).insert(authority.clone(), apps.clone());
        Registration { authority, apps }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut registered = locked(&REGISTERED);
        // A server that was started again can have the address of the one before it.
        let known = registered.get(&self.authority);
        if known.is_some_and(|apps| Arc::ptr_eq(apps, &self.apps)) {
            registered.remove(&self.authority);
        }
    }
}

/// A request, and the beginning of its response.
pub struct Exchange {
    method: Method,
    /// The URL of the response, which is that of the last request after redirects.
    url: Url,
    status: u16,
    content_type: String,
}

impl Exchange {
    /// Sends a request, and returns the exchange with the response.
    ///
    /// # Panics
    ///
    /// If the request fails.
    pub async fn begin(request: RequestBuilder) -> (Self, Response) {
        let (client, request) = request.build_split();
        let request = request.expect("a valid request");
        let method = request.method().clone();
        let response = client.execute(request).await.expect("the server responds");
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let exchange = Self {
            method,
            url: response.url().clone(),
            status: response.status().as_u16(),
            content_type: media_type.to_owned(),
        };
        (exchange, response)
    }

    /// Checks the status and the content type of a response of an application.
    ///
    /// # Panics
    ///
    /// If the application does not describe them.
    pub fn check_head(&self) {
        self.check_with(None);
    }

    /// Checks the whole response of an application.
    ///
    /// # Panics
    ///
    /// If the application does not describe it.
    pub fn check(&self, text: &str) {
        self.check_with(Some(text));
    }

    fn check_with(&self, text: Option<&str>) {
        let registered = locked(&REGISTERED).get(self.url.authority()).cloned();
        let Some((app, path)) = registered.as_deref().and_then(|apps| self.target(apps)) else {
            return;
        };
        if let Err(why) = app.description.check(self, path, text) {
            let (name, file) = (&app.name, app.description.file.display());
            let Self { method, status, .. } = self;
            panic!("`{name}`: {method} {path} with status {status} is not as `{file}` says: {why}");
        }
    }

    /// Returns the application that the request is for, and the path below its root.
    fn target<'a>(&'a self, apps: &'a [App]) -> Option<(&'a App, &'a str)> {
        // Responses to these methods have no body, and only the host responds to preflights.
        if self.method == Method::OPTIONS || self.method == Method::HEAD {
            return None;
        }
        let path = self.url.path();
        if let Some(rest) = path.strip_prefix(BY_NAME) {
            let (name, _) = rest.split_once('/')?;
            let app = apps.iter().find(|app| app.name == name)?;
            let inner = &rest[name.len()..];
            return app.description.has_below(inner).then_some((app, inner));
        }
        if path.starts_with(OF_HOST) {
            return None;
        }
        let below = apps.iter().filter_map(|app| {
            let inner = path.strip_prefix(app.mount.as_deref()?.trim_end_matches('/'))?;
            let is_below = inner.starts_with('/') && app.description.has_below(inner);
            is_below.then_some((app, inner))
        });
        let below: Vec<(&App, &str)> = below.collect();
        let described = below.iter().find(|(app, inner)| app.description.path(inner).is_some());
        described.or(below.first()).copied()
    }
}

/// The `openapi.json` of an application.
struct Description {
    file: PathBuf,
    document: Value,
    /// Compiled schemas by their text.
    schemas: Mutex<BTreeMap<String, Arc<Schema>>>,
}

impl Description {
    /// Returns the description in a file, or `None` if there is no such file.
    fn of(file: &Path) -> Option<Arc<Self>> {
        let mut known = locked(&DESCRIPTIONS);
        if let Some(description) = known.get(file) {
            return Some(description.clone());
        }
        let text = std::fs::read_to_string(file).ok()?;
        let document = serde_json::from_str(&text).expect("JSON");
        let description = Arc::new(Self::new(file.to_owned(), document));
        known.insert(file.to_owned(), description.clone());
        Some(description)
    }

    fn new(file: PathBuf, document: Value) -> Self {
        Self { file, document, schemas: Mutex::default() }
    }

    /// Returns the described paths with their operations.
    fn paths(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document["paths"].as_object().into_iter().flatten()
    }

    /// Returns true if a described path has the same first segment.
    fn has_below(&self, path: &str) -> bool {
        let first = |path: &str| path.split('/').nth(1).map(str::to_owned);
        self.paths().any(|(described, _)| first(described) == first(path))
    }

    /// Returns the operations of the described path that a path has. A path without parameters takes
    /// precedence.
    fn path(&self, path: &str) -> Option<&Value> {
        let mut fitting: Vec<_> = self.paths().filter(|(known, _)| has_form(path, known)).collect();
        fitting.sort_by_key(|(known, _)| known.matches('{').count());
        fitting.first().map(|(_, operations)| *operations)
    }

    /// Checks a response to a request for a path. Without its text, only its status and content type
    /// are checked.
    fn check(&self, exchange: &Exchange, path: &str, text: Option<&str>) -> Result<(), String> {
        if exchange.content_type == PROBLEM {
            return Ok(());
        }
        let method = exchange.method.as_str().to_ascii_lowercase();
        let operation = self.path(path).and_then(|operations| operations.get(&method));
        let operation = operation.ok_or("it has no such route")?;
        let response = response(operation, exchange.status)?;
        let Some(content) = response.get("content") else {
            let is_empty = text.is_none_or(str::is_empty);
            return if is_empty { Ok(()) } else { Err("the response has no body".to_owned()) };
        };
        let content_type = exchange.content_type.as_str();
        let Some(media) = content.get(content_type) else {
            let known = names(content);
            return Err(format!("the content type is {known}, and not `{content_type}`"));
        };
        match (text, content_type) {
            (Some(text), JSON) => self.check_document(&media["schema"], text),
            (Some(text), EVENTS) => self.check_events(&media["schema"], text),
            _ => Ok(()),
        }
    }

    fn check_document(&self, schema: &Value, text: &str) -> Result<(), String> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        self.check_value(schema, &document)
    }

    fn check_events(&self, schema: &Value, text: &str) -> Result<(), String> {
        // Streams in formats of the host have events of any form.
        if is_any(schema) {
            return Ok(());
        }
        for block in blocks(text) {
            let (event, data) = (block.event.unwrap_or_default(), block.data.unwrap_or_default());
            // A comment is no event.
            if data.is_empty() {
                continue;
            }
            let of_event = |why: String| format!("event `{event}`: {why}");
            let data: Value = serde_json::from_str(&data)
                .map_err(|error| of_event(format!("no JSON: {error}")))?;
            let alternative = self.event(schema, &event).map_err(of_event)?;
            let value = json!({ "event": event, "data": data });
            self.check_value(alternative, &value).map_err(of_event)?;
        }
        Ok(())
    }

    /// Returns the alternative of a schema for an event, so that a difference names the field.
    fn event<'a>(&'a self, schema: &'a Value, event: &str) -> Result<&'a Value, String> {
        let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        let schema = match reference {
            Some(pointer) => self.document.pointer(pointer).ok_or("the schema is missing")?,
            None => schema,
        };
        let Some(alternatives) = schema["oneOf"].as_array() else { return Ok(schema) };
        let is_of_event = |it: &&Value| it["properties"]["event"]["const"] == event;
        alternatives.iter().find(is_of_event).ok_or_else(|| "it has no such event".to_owned())
    }

    fn check_value(&self, schema: &Value, value: &Value) -> Result<(), String> {
        if is_any(schema) {
            return Ok(());
        }
        let found = self.compiled(schema).violations(value, DIFFERENCES);
        let found = found.map_err(|exceeded| exceeded.message)?;
        if found.is_empty() { Ok(()) } else { Err(found.join("; ")) }
    }

    fn compiled(&self, schema: &Value) -> Arc<Schema> {
        let mut schemas = locked(&self.schemas);
        let schema = schemas.entry(schema.to_string()).or_insert_with(|| {
            let mut root = schema.clone();
            // References lead there.
            root["components"] = self.document["components"].clone();
            let compiled = Schema::compile(&root);
            Arc::new(compiled.unwrap_or_else(|error| panic!("{}: {error}", self.file.display())))
        });
        schema.clone()
    }
}

/// Returns true if a schema accepts each value.
fn is_any(schema: &Value) -> bool {
    *schema == Value::Bool(true)
}

/// Returns the description of the responses with a status. The one for all other statuses is that of
/// errors.
fn response(operation: &Value, status: u16) -> Result<&Value, String> {
    let responses = &operation["responses"];
    let named = responses.get(status.to_string());
    let other = || responses.get("default").filter(|_| status >= 400);
    named.or_else(other).ok_or_else(|| format!("the status is {}", names(responses)))
}

/// Returns the keys of an object for a message.
fn names(object: &Value) -> String {
    let keys = object.as_object().into_iter().flatten().map(|(key, _)| format!("`{key}`"));
    keys.collect::<Vec<_>>().join(" or ")
}

/// Returns true if a path has the form of a described path, in which `{name}` is any segment.
fn has_form(path: &str, described: &str) -> bool {
    let (found, wanted): (Vec<&str>, Vec<&str>) =
        (path.split('/').collect(), described.split('/').collect());
    let is_parameter = |segment: &str| segment.starts_with('{') && segment.ends_with('}');
    let fits = |(found, wanted): (&&str, &str)| {
        *found == wanted || (is_parameter(wanted) && !found.is_empty())
    };
    found.len() == wanted.len() && found.iter().zip(wanted).all(fits)
}

#[cfg(test)]
mod tests {
    use reqwest::Client;
    use wattle_kit::standin;

    use super::*;
    use crate::answer::Answer;

    fn description() -> Description {
        let item = json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" },
            "size": { "type": "integer" },
        } });
        let event = json!({ "oneOf": [{ "type": "object", "required": ["event", "data"],
            "properties": { "event": { "const": "added" },
                "data": { "$ref": "#/components/schemas/Item" } } }] });
        let content = |kind: &str, schema: &str| {
            let schema = json!({ "$ref": format!("#/components/schemas/{schema}") });
            json!({ "description": "Success", "content": { kind: { "schema": schema } } })
        };
        let document = json!({
            "paths": {
                "/api/items/{id}": {
                    "get": { "responses": { "200": content(JSON, "Item"),
                        "default": content(JSON, "Problem") } },
                    "delete": { "responses": { "204": { "description": "Success" } } },
                },
                "/api/items/events": {
                    "get": { "responses": { "200": content(EVENTS, "Event") } },
                },
            },
            "components": { "schemas": { "Item": item, "Event": event,
                "Problem": { "type": "object", "required": ["error"] } } },
        });
        Description::new(PathBuf::from("openapi.json"), document)
    }

    /// Returns the difference of a response, or an empty text.
    fn difference(route: &str, status: u16, content_type: &str, text: &str) -> String {
        let (method, path) = route.split_once(' ').unwrap();
        let exchange = Exchange {
            method: method.parse().unwrap(),
            url: Url::parse("http://127.0.0.1:1").unwrap(),
            status,
            content_type: content_type.to_owned(),
        };
        description().check(&exchange, path, Some(text)).err().unwrap_or_default()
    }

    #[test]
    fn described_responses_have_no_difference() {
        let event = ": comment\n\nid: 1\nevent: added\ndata: {\"name\": \"a\"}\n\n";
        for (route, status, content_type, text) in [
            ("GET /api/items/1", 200, JSON, r#"{"name": "a", "size": 1, "more": null}"#),
            ("GET /api/items/1", 404, JSON, r#"{"error": "x"}"#),
            ("GET /api/items/1", 500, PROBLEM, r#"{"detail": "x"}"#),
            ("GET /api/items", 404, PROBLEM, "{}"),
            ("DELETE /api/items/1", 204, "", ""),
            ("GET /api/items/events", 200, EVENTS, event),
        ] {
            assert_eq!(difference(route, status, content_type, text), "", "{route} {status}");
        }
    }

    #[test]
    fn differences_name_the_place_and_what_is_described() {
        let odd = "event: added\ndata: {\"name\": 7}\n\n";
        let unknown = "event: removed\ndata: {}\n\n";
        for (route, status, content_type, text, words) in [
            ("GET /api/items", 200, JSON, "{}", "no such route"),
            ("POST /api/items/1", 200, JSON, "{}", "no such route"),
            ("GET /api/items/1", 201, JSON, "{}", "the status is `200` or `default`"),
            ("DELETE /api/items/1", 404, JSON, "{}", "the status is `204`"),
            ("DELETE /api/items/1", 204, "", "x", "no body"),
            ("GET /api/items/1", 200, "text/plain", "x", "`application/json`; `text/plain`"),
            ("GET /api/items/1", 200, JSON, "{", "no JSON"),
            ("GET /api/items/1", 200, JSON, r#"{"name": null}"#, "null; string; `/name`"),
            ("GET /api/items/1", 200, JSON, "{}", "name; required"),
            ("GET /api/items/1", 409, JSON, "{}", "error; required"),
            ("GET /api/items/events", 200, EVENTS, odd, "`added`; string; `/data/name`"),
            ("GET /api/items/events", 200, EVENTS, unknown, "`removed`; no such event"),
        ] {
            let found = difference(route, status, content_type, text);
            let has_all = words.split("; ").all(|word| found.contains(word));
            assert!(has_all, "{route} {status} {text}: {found}");
        }
    }

    #[test]
    fn requests_are_for_the_app_whose_paths_are_below_its_name_or_mount() {
        let description = Arc::new(description());
        let app = |name: &str, mount: Option<&str>| App {
            name: name.to_owned(),
            mount: mount.map(str::to_owned),
            description: description.clone(),
        };
        let apps = [app("a", None), app("b", Some("/b/")), app("c", Some("/"))];
        for (method, path, wanted) in [
            ("GET", "/apps/a/api/items/1", Some(("a", "/api/items/1"))),
            ("GET", "/apps/c/api/none", Some(("c", "/api/none"))),
            ("GET", "/b/api/items/1", Some(("b", "/api/items/1"))),
            ("GET", "/api/items/1?x=1", Some(("c", "/api/items/1"))),
            ("GET", "/api/none", Some(("c", "/api/none"))),
            ("GET", "/api/v1/threads", None),
            ("GET", "/apps/a/", None),
            ("GET", "/apps/other/api/items/1", None),
            ("GET", "/index.html", None),
            ("OPTIONS", "/api/items/1", None),
        ] {
            let exchange = Exchange {
                method: method.parse().unwrap(),
                url: Url::parse(&format!("http://127.0.0.1:1{path}")).unwrap(),
                status: 200,
                content_type: JSON.to_owned(),
            };
            let found = exchange.target(&apps).map(|(app, path)| (app.name.as_str(), path));
            assert_eq!(found, wanted, "{method} {path}");
        }
    }

    /// The app describes a path of the stand-in, but none of its statuses.
    #[tokio::test]
    async fn a_response_that_the_app_does_not_describe_fails_the_test_until_the_app_is_gone() {
        let server = standin::Server::start(standin::Config::default()).await.unwrap();
        let document = json!({ "paths": { "/nothing/here": { "get": { "responses": {} } } } });
        let description = Arc::new(Description::new(PathBuf::from("openapi.json"), document));
        let app = App { name: "a".to_owned(), mount: Some("/".to_owned()), description };
        let client = Client::builder().no_proxy().build().unwrap();
        let url = format!("{}/nothing/here", server.base_url);
        let earlier = Apps(Vec::new()).at(&server.base_url);
        let registration = Apps(vec![app]).at(&server.base_url);
        drop(earlier);
        let failed = tokio::spawn(Answer::of(client.get(&url))).await.unwrap_err();
        let message = failed.into_panic().downcast::<String>().unwrap();
        assert!(message.contains("GET /nothing/here with status"), "{message}");
        drop(registration);
        Answer::of(client.get(&url)).await;
    }
}
