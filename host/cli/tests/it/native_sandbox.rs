//! A sandbox whose "components" are Rust code, so that tests of a whole server need no guests.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Notify;
use wattle_graph::event::Write;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, ChannelName, Digest, PluginName, ThreadId};
use wattle_graph::llm::CompletionRequest;
use wattle_graph::tool::ToolOutput;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::Grants;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::memory::GetDocument;
use wattle_run::hostcall::runs::StartRun;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::openapi::EndpointDescription;
use wattle_run::ports::sandbox::{
    GuestError, HandOff, LoadEffort, LoadError, NodeCall, NodeInfo, NodeOutcome, PluginInfo,
    PluginToolCall, StreamFormat, ToolHints, ToolInfo, WebBody, WebRequest, WebResponse, WebRoute,
};
use wattle_run::ports::{Plugin, Sandbox};

/// Input name for which `greet` emits an event about its run.
pub(crate) const LOGGED: &str = "Logged";

/// Beginning of an input name for which `greet` fails. The rest of the name is the message.
pub(crate) const FAILING: &str = "fail: ";

/// Input name for which `greet` never ends.
pub(crate) const SLOW: &str = "Slow";

/// Input name for which `greet` reads the document of the name in the memory.
pub(crate) const KNOWN: &str = "Known";

/// The plugin that has a tool, and the tool, which reads the document [`KNOWN`] in the memory.
pub(crate) const TOOLBOX: (&str, &str) = ("toolbox", "look_up");

/// Input name for which `greet` requests two completions of the route `chat`.
pub(crate) const TALKED: &str = "Talked";

/// Notified when the handler of `/late` has started its run.
pub(crate) static HELD: Notify = Notify::const_new();

/// Releases the handler of `/late`, which then hands off its run.
pub(crate) static RELEASED: Notify = Notify::const_new();

/// Loads every file that begins with `native`, and rejects all other files. The lines after the
/// first one are the manifest.
pub(crate) struct NativeSandbox;

#[async_trait]
impl Sandbox for NativeSandbox {
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        _: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        if !bytes.starts_with(b"native") {
            return Err(LoadError {
                plugin: name.clone(),
                code: "not-wasm",
                message: "it is no component".into(),
                hint: "build it again".into(),
            });
        }
        let node = |name: &str| NodeInfo {
            name: name.into(),
            doc: format!("what `{name}` does"),
            // The schemas name no properties, so that a node can read and write any channel.
            input_schema: json!({ "title": format!("input of `{name}`") }),
            output_schema: json!({ "title": format!("output of `{name}`") }),
            config_schema: None,
            reads: None,
        };
        let route = |method: &str, path: &str| WebRoute {
            method: method.into(),
            path: path.into(),
            openapi: None,
        };
        let echo = WebRoute { openapi: Some(echo()), ..route("GET", "/echo/{word}") };
        let special = match name.as_str() {
            // This app claims a path of the host.
            "linker" => Some(route("GET", "/blobs/{name}")),
            "rooted" => Some(route("GET", "/")),
            _ => None,
        };
        Ok(Some(Arc::new(NativePlugin(PluginInfo {
            name: name.clone(),
            digest: Digest::of(&bytes),
            size_bytes: bytes.len() as u64,
            contract: "0.1.0".into(),
            imports: vec!["wattle:plugin/interrupt".into()],
            exports: vec!["wattle:plugin/node".into(), "wattle:plugin/web".into()],
            nodes: vec![node("greet"), node("ask")],
            tools: (name.as_str() == TOOLBOX.0).then(look_up).into_iter().collect(),
            reducers: Vec::new(),
            routes: special
                .into_iter()
                .chain([
                    route("POST", "/start"),
                    route("POST", "/late/{thread}"),
                    echo,
                    route("GET", "/stream/{thread}"),
                    route("GET", "/own/{thread}"),
                    route("GET", "/talk/{thread}"),
                    route("GET", "/agent/{thread}"),
                    route("GET", "/fail"),
                    route("GET", "/blob/{blob}"),
                ])
                .collect(),
            refused: Vec::new(),
            manifest: manifest(&bytes),
        }))))
    }
}

fn manifest(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.split_once('\n').map(|(_, manifest)| manifest.to_owned())
}

/// The description of `/echo/{word}`.
fn echo() -> EndpointDescription {
    let schema = json!({ "$ref": "#/components/schemas/Echo" });
    let content = json!({ "application/json": { "schema": schema } });
    serde_json::from_value(json!({
        "operation": {
            "summary": "Returns the request.",
            "parameters": [{ "name": "times", "in": "query", "schema": { "type": "integer" } }],
            "responses": { "200": { "content": content } },
        },
        "schemas": {
            "Echo": { "type": "object", "properties": { "again": schema } },
        },
    }))
    .unwrap()
}

struct NativePlugin(PluginInfo);

#[async_trait]
impl Plugin for NativePlugin {
    fn info(&self) -> &PluginInfo {
        &self.0
    }

    async fn run_node(&self, call: NodeCall, gate: Arc<Gate>) -> Result<NodeOutcome, GuestError> {
        let (channel, value) = match call.node.as_str() {
            "greet" => {
                if *call.input.get("name") == "nobody" {
                    return Err(GuestError::Failure(Failure::new("rude", "nobody is no name")));
                }
                if let Some(message) =
                    call.input.get("name").as_str().and_then(|name| name.strip_prefix(FAILING))
                {
                    return Err(GuestError::Failure(Failure::new("rude", message)));
                }
                if *call.input.get("name") == SLOW {
                    std::future::pending::<()>().await;
                }
                if *call.input.get("name") == LOGGED {
                    let data = json!({ "session_id": "s/1", "status": "success", "name": LOGGED });
                    let emission = Emission::Custom { name: "node_io".into(), data };
                    gate.emit(emission)
                        .await
                        .map_err(|_| GuestError::Host(Failure::internal("emit")))?;
                }
                if *call.input.get("name") == KNOWN {
                    read_known(&gate).await?;
                }
                if *call.input.get("name") == TALKED {
                    for _ in 0..2 {
                        let request = CompletionRequest::new("chat", Vec::new());
                        gate.call(request).await.map_err(guest_error)?;
                    }
                }
                (
                    "greeting",
                    json!(format!("hello {}", call.input.get("name").as_str().unwrap_or("?"))),
                )
            }
            _ => {
                let question = InterruptRequest {
                    payload: json!({ "about": call.input.get("greeting") }),
                    response_schema: Some(json!({ "type": "boolean" })),
                };
                match gate.ask(question).await {
                    Ok(answer) => ("approved", answer),
                    Err(CallError::Failure(failure)) => return Err(GuestError::Failure(failure)),
                    Err(CallError::Unwind(unwind)) => return Err(GuestError::Unwound(unwind)),
                }
            }
        };
        let channel = ChannelName::new(channel).unwrap();
        let writes = vec![Write { channel, value, overwrite: false }];
        Ok(NodeOutcome { writes, ..NodeOutcome::default() })
    }

    async fn call_tool(
        &self,
        _call: PluginToolCall,
        gate: Arc<Gate>,
    ) -> Result<ToolOutput, GuestError> {
        read_known(&gate).await?;
        Ok(ToolOutput { structured: Some(json!("found")), ..ToolOutput::default() })
    }

    async fn handle(
        &self,
        request: WebRequest,
        gate: Arc<Gate>,
    ) -> Result<WebResponse, GuestError> {
        let param = request.params.first().map(|(_, value)| value.clone()).unwrap_or_default();
        let body = match request.route.as_str() {
            "/start" => {
                let input: Value = serde_json::from_slice(&request.body).unwrap_or_default();
                let runs = gate.runs().map_err(GuestError::Failure)?;
                let run =
                    runs.start(start_run(&gate, None, input)).await.map_err(GuestError::Failure)?;
                let ended = runs.wait(&run).await.map_err(GuestError::Failure)?;
                return Ok(json_response(201, &serde_json::to_value(ended).unwrap()));
            }
            "/late/{thread}" => {
                let runs = gate.runs().map_err(GuestError::Failure)?;
                let thread = ThreadId::new(param.clone()).unwrap();
                let start = start_run(&gate, Some(thread), json!({ "name": SLOW }));
                runs.start(start).await.map_err(GuestError::Failure)?;
                HELD.notify_one();
                RELEASED.notified().await;
                hand_off(&request, param, StreamFormat::AiSdk)
            }
            "/fail" => return Err(GuestError::Failure(Failure::new("own-code", "it went wrong"))),
            "/stream/{thread}" => hand_off(&request, param, StreamFormat::Sse),
            "/own/{thread}" => hand_off(&request, param, StreamFormat::Custom("own".into())),
            "/talk/{thread}" => hand_off(&request, param, StreamFormat::AiSdk),
            "/agent/{thread}" => hand_off(&request, param, StreamFormat::AgUi),
            "/blob/{blob}" => WebBody::Blob(BlobRef::parse(&param).unwrap()),
            _ => {
                let echo = json!({
                    "word": param, "query": request.query, "headers": request.headers,
                    "tenant": request.tenant, "path": request.path,
                });
                return Ok(json_response(200, &echo));
            }
        };
        Ok(WebResponse { status: 200, headers: Vec::new(), body })
    }

    async fn reduce(
        &self,
        _app: &AppName,
        _reducer: &str,
        _current: Option<Value>,
        _updates: Vec<Value>,
        _grants: &Grants,
    ) -> Result<Value, GuestError> {
        Err(GuestError::Failure(Failure::unsupported("reducer")))
    }
}

fn look_up() -> ToolInfo {
    ToolInfo {
        name: TOOLBOX.1.into(),
        description: "reads a name".into(),
        arguments_schema: json!({ "type": "object" }),
        accepts_invalid: false,
        hints: ToolHints { read_only: true, idempotent: false },
        reference: None,
        unavailable: None,
    }
}

/// Reads the document [`KNOWN`] in the memory.
async fn read_known(gate: &Gate) -> Result<(), GuestError> {
    let document = GetDocument { namespace: vec!["names".to_owned()], key: KNOWN.into() };
    gate.call(document).await.map(drop).map_err(guest_error)
}

fn guest_error(error: CallError) -> GuestError {
    match error {
        CallError::Failure(failure) => GuestError::Failure(failure),
        CallError::Unwind(unwind) => GuestError::Unwound(unwind),
    }
}

fn start_run(gate: &Gate, thread: Option<ThreadId>, input: Value) -> StartRun {
    StartRun { thread, ..StartRun::new(gate.caller().app.clone(), input) }
}

/// The query parameter `grace_ms` contains the time for which the run may have no client.
fn hand_off(request: &WebRequest, thread: String, format: StreamFormat) -> WebBody {
    let thread = ThreadId::new(thread).unwrap();
    let grace = request.query.iter().find(|(name, _)| name == "grace_ms");
    WebBody::HandOff(HandOff {
        thread,
        run: None,
        format,
        after: None,
        cancel_after_ms: grace.map(|(_, ms)| ms.parse().unwrap()),
        nodes: Vec::new(),
    })
}

fn json_response(status: u16, value: &Value) -> WebResponse {
    WebResponse {
        status,
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("connection".into(), "upgrade".into()),
            ("access-control-allow-origin".into(), "*".into()),
        ],
        body: WebBody::Bytes(value.to_string().into()),
    }
}
