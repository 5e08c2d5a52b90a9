//! Nodes and a handler that call the host for settings, pictures, other graphs and tenants.

use wattle_plugin::llm::ImageRequest;
use wattle_plugin::prelude::{
    BlobRef, Context, Deserialize, Empty, Failure, JsonSchema, Request, Response, Serialize, Value,
    blob, handler, json, llm, node, runs, settings, tenants,
};

use crate::basic::Text;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettingsRead {
    /// A setting.
    color: String,
    /// A setting with a default.
    language: String,
    /// Code of the failure for a setting that is not set.
    missing: String,
    /// All settings.
    all: Value,
}

/// Reads the settings of the app.
#[node]
pub(crate) fn read_settings(_context: &Context, _input: Empty) -> Result<SettingsRead, Failure> {
    Ok(SettingsRead {
        color: settings::require("color")?,
        language: settings::text_or("language", "en")?,
        missing: code_of(settings::require::<String>("shape")),
        all: settings::all()?,
    })
}

/// Returns the code of a failure, or an empty text.
fn code_of<T>(result: Result<T, Failure>) -> String {
    result.err().map(|failure| failure.code).unwrap_or_default()
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Prompt {
    /// The prompt.
    prompt: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Drawn {
    /// Type, size and bytes of the picture.
    picture: Value,
    /// Whether the picture comes with the link of its blob.
    is_linked: bool,
    /// Code of the failure for a reference to no blob.
    refused: String,
}

/// Generates a picture and reads it.
#[node]
pub(crate) fn draw(_context: &Context, input: Prompt) -> Result<Drawn, Failure> {
    let images = llm::generate_images(ImageRequest::new("chat", input.prompt))?;
    let image = images.first().ok_or_else(|| Failure::not_found("there is no picture"))?;
    let info = blob::stat(&image.blob)?;
    let start = String::from_utf8(blob::get_range(&image.blob, 0, 5)?)?;
    let text = String::from_utf8(blob::get(&image.blob)?)?;
    let picture = json!({
        "media_type": info.media_type,
        "size": info.size,
        "start": start,
        "text": text,
    });
    let is_linked = image.link() == blob::link(&image.blob)?;
    let refused = code_of(blob::stat(&BlobRef("none".to_owned())));
    Ok(Drawn { picture, is_linked, refused })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Delegated {
    /// States of graphs, and codes of failures.
    outcomes: Vec<Value>,
    /// Code of the failure for the list of threads.
    refused: String,
}

/// Runs three graphs: one that completes, one that fails, and one that asks.
#[node]
pub(crate) fn delegate(_context: &Context, input: Text) -> Result<Delegated, Failure> {
    let text = json!({ "text": input.text });
    let fault = json!({
        "code": "sold-out",
        "message": "there are no seats",
        "retryable": false,
        "details": { "seats": 0 },
    });
    let outcomes =
        vec![outcome("words", text.clone())?, outcome("fail", fault)?, outcome("approve", text)?];
    let refused = code_of(runs::ThreadSearch::all().graph("words").run());
    Ok(Delegated { outcomes, refused })
}

fn outcome(graph: &str, input: Value) -> Result<Value, Failure> {
    let ended = runs::Start::graph(graph).input(input).start_and_wait()?;
    Ok(match ended.outcome {
        runs::Outcome::Failed(failure) => json!({ "code": failure.code }),
        _ => ended.state,
    })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Owner {
    /// The tenant.
    tenant: String,
    /// Code of the failure for a route of the tenant.
    refused: String,
}

/// Names the tenant of the run.
#[node]
pub(crate) fn whose(context: &Context, _input: Empty) -> Result<Owner, Failure> {
    let tenant = context.tenant.clone().unwrap_or_default();
    Ok(Owner { tenant, refused: code_of(tenants::get_route("chat")) })
}

/// Gives the tenant a model of its own, and takes it back.
#[handler(PUT, "/models/{route}")]
pub(crate) fn own_model(request: &Request) -> Result<Response, Failure> {
    let route: String = request.param("route")?;
    tenants::set_route(&route, request.json::<Value>()?)?;
    let own = tenants::get_route(&route)?;
    tenants::remove_route(&route)?;
    let removed = tenants::get_route(&route)?;
    Response::json(200, &json!({ "own": own, "removed": removed, "tenant": request.tenant }))
}
