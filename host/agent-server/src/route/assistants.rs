//! Assistants: graphs with settings. Each graph is one by itself, which nobody changes.

mod about;
mod find;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value};
use uuid::Uuid;
use wattle_run::ports::memory::MemoryScope;
use wattle_run::ports::store::{ThreadQuery, ThreadRecord};

use crate::agents::Agents;
use crate::assistants::{self, made, of_graph};
use crate::caller::{Body, Caller, Place, uuid};
use crate::doc::assistant::{AssistantDoc, Version};
use crate::fault::Fault;
use crate::graphs;
use crate::query::Query;
use crate::route::search::{PAGE, holds};
use crate::route::threads::remove;
use crate::wire::request::{
    AssistantCreate, AssistantLatest, AssistantPatch, AssistantVersions, Config, IfExists, Invalid,
    settled,
};
use crate::wire::shape::Assistant;

/// Most assistants, or versions of one, of one answer.
const LARGEST_PAGE: usize = 1_000;

/// What an assistant is called that has no name.
const UNTITLED: &str = "Untitled";

/// The fact of a thread that says by which assistant it ran first.
const ASSISTANT_ID: &str = "assistant_id";

pub(super) fn routes() -> Router<Agents> {
    Router::new()
        .route("/assistants", post(create))
        .route("/assistants/search", post(find::search))
        .route("/assistants/count", post(find::count))
        .route("/assistants/{id}", get(read).patch(update).delete(delete))
        .route("/assistants/{id}/versions", post(versions))
        .route("/assistants/{id}/latest", post(latest))
        .route("/assistants/{id}/graph", get(about::graph))
        .route("/assistants/{id}/schemas", get(about::schemas))
        .route("/assistants/{id}/subgraphs", get(about::subgraphs))
        .route("/assistants/{id}/subgraphs/{namespace}", get(about::subgraph))
}

/// Makes an assistant.
async fn create(
    State(agents): State<Agents>,
    caller: Caller,
    Body(request): Body<AssistantCreate>,
) -> Result<Json<Assistant>, Fault> {
    let graph = graphs::find(agents.engine().catalog(), &request.graph_id)?;
    let (config, context) = settled(request.config, request.context)?;
    check_config(&config)?;
    let id = match &request.assistant_id {
        Some(id) => uuid("assistant", id)?,
        None => Uuid::now_v7(),
    };
    let _changing = agents.assistants_changing().await;
    if let Some(there) = known(&agents, &caller, id).await? {
        return match request.if_exists.unwrap_or_default() {
            IfExists::DoNothing => Ok(Json(there)),
            IfExists::Raise => {
                Err(Fault::conflict(format!("there is an assistant `{id}` already")))
            }
        };
    }
    let now_ms = agents.now_ms();
    let used = Version {
        number: 1,
        created_ms: now_ms,
        graph_id: graph.id,
        config,
        context,
        metadata: request.metadata.unwrap_or_default(),
        name: request.name.unwrap_or_else(|| UNTITLED.to_owned()),
        description: request.description,
    };
    let id = id.to_string();
    let doc = AssistantDoc { id, created_ms: now_ms, updated_ms: now_ms, newest: 1, used };
    doc.save(agents.ports(), &scope(&caller)).await?;
    Ok(Json(doc.shape()))
}

fn scope(caller: &Caller) -> MemoryScope {
    MemoryScope::Host(caller.tenant.clone())
}

/// Settings that no run could have are refused at once.
fn check_config(config: &Map<String, Value>) -> Result<(), Fault> {
    let read = serde_json::from_value::<Config>(config.clone().into());
    read.map(drop).map_err(|error| {
        let why = format!("`config` of the request cannot be read: {error}");
        Invalid::Schema(why).into()
    })
}

/// The assistant of a UUID, whoever made it.
async fn known(agents: &Agents, caller: &Caller, id: Uuid) -> Result<Option<Assistant>, Fault> {
    if let Some(made) = made(agents, caller.tenant.as_ref(), id).await? {
        return Ok(Some(made.shape()));
    }
    let graphs = graphs::all(agents.engine().catalog());
    Ok(graphs.iter().find(|graph| graph.assistant() == id).map(of_graph))
}

/// Reads an assistant, by its id or by the name of a graph.
async fn read(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
) -> Result<Json<Assistant>, Fault> {
    if let Ok(uuid) = Uuid::try_parse(&id) {
        let found = known(&agents, &caller, uuid).await?;
        return found.map(Json).ok_or_else(|| Fault::missing("assistant", &id));
    }
    let found = assistants::find(&agents, caller.tenant.as_ref(), &id).await?;
    Ok(Json(of_graph(&found)))
}

/// An assistant that can be changed.
async fn own(agents: &Agents, caller: &Caller, id: &str) -> Result<AssistantDoc, Fault> {
    if let Ok(graph) = graphs::find(agents.engine().catalog(), id) {
        let graph = &graph.id;
        let text = format!(
            "assistant `{id}` is graph `{graph}` itself, and is there as long as that; make \
             another of the graph"
        );
        return Err(Fault::conflict(text));
    }
    let found = made(agents, caller.tenant.as_ref(), uuid("assistant", id)?).await?;
    found.ok_or_else(|| Fault::missing("assistant", id))
}

/// Changes an assistant: makes a version of it, which runs use from then on.
async fn update(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<AssistantPatch>,
) -> Result<Json<Assistant>, Fault> {
    let _changing = agents.assistants_changing().await;
    let doc = own(&agents, &caller, &id).await?;
    let Version { graph_id, config, context, metadata, name, description, .. } = doc.used.clone();
    let graph_id = match &request.graph_id {
        Some(id) => graphs::find(agents.engine().catalog(), id)?.id,
        None => graph_id,
    };
    let (config, context) = match (request.config, request.context) {
        (None, None) => (config, context),
        // The other one says the same, so it goes with what is replaced.
        (None, context) => {
            let mut config = config;
            config.remove("configurable");
            settled(Some(config), context)?
        }
        // What nodes are handed stays unless one of both says otherwise.
        (Some(given), None) if !given.contains_key("configurable") => {
            settled(Some(given), Some(context))?
        }
        (given, further) => settled(given, further)?,
    };
    check_config(&config)?;
    let (now_ms, number) = (agents.now_ms(), doc.newest.saturating_add(1));
    let mut metadata = metadata;
    metadata.extend(request.metadata.unwrap_or_default());
    let used = Version {
        number,
        created_ms: now_ms,
        graph_id,
        config,
        context,
        metadata,
        name: request.name.unwrap_or(name),
        description: request.description.or(description),
    };
    let doc = AssistantDoc { updated_ms: now_ms, newest: number, used, ..doc };
    doc.save(agents.ports(), &scope(&caller)).await?;
    Ok(Json(doc.shape()))
}

/// Deletes an assistant with its versions, and its threads if that is wanted.
async fn delete(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    query: Query,
) -> Result<StatusCode, Fault> {
    let _changing = agents.assistants_changing().await;
    let doc = own(&agents, &caller, &id).await?;
    if query.flag("delete_threads")? {
        let all = ThreadQuery { tenant: caller.tenant.clone(), ..ThreadQuery::default() };
        let threads = agents.ports().store.threads(&all).await?;
        let is_its = |it: &ThreadRecord| {
            // Operators see threads of all tenants, and ids are chosen by each tenant.
            it.tenant == caller.tenant
                && it.metadata.get(ASSISTANT_ID).is_some_and(|id| *id == doc.id.as_str())
        };
        for thread in threads.into_iter().filter(is_its) {
            remove(&agents, thread).await?;
        }
    }
    doc.forget(agents.ports(), &scope(&caller)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists versions, the newest first.
async fn versions(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<AssistantVersions>,
) -> Result<Json<Vec<Assistant>>, Fault> {
    let all = match graphs::find(agents.engine().catalog(), &id) {
        Ok(graph) => vec![of_graph(&graph)],
        Err(_) => {
            let doc = own(&agents, &caller, &id).await?;
            let all = doc.versions(agents.ports(), &scope(&caller)).await?;
            all.iter().map(|version| version.shape(&doc.id)).collect()
        }
    };
    let wanted = Value::Object(request.metadata.unwrap_or_default());
    let found = all.into_iter().filter(|it| holds(&it.metadata.clone().into(), &wanted));
    let limit = request.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    Ok(Json(found.skip(request.offset.unwrap_or(0)).take(limit).collect()))
}

/// Lets runs use another version.
async fn latest(
    State(agents): State<Agents>,
    caller: Caller,
    Place(id): Place<String>,
    Body(request): Body<AssistantLatest>,
) -> Result<Json<Assistant>, Fault> {
    let missing = || Fault::missing("version", &format!("{} of assistant {id}", request.version));
    if let Ok(graph) = graphs::find(agents.engine().catalog(), &id) {
        let own = of_graph(&graph);
        return if own.version == request.version { Ok(Json(own)) } else { Err(missing()) };
    }
    let _changing = agents.assistants_changing().await;
    let doc = own(&agents, &caller, &id).await?;
    let number = request.version;
    let used = doc.version(agents.ports(), &scope(&caller), number).await?;
    let used = used.filter(|it| it.number <= doc.newest).ok_or_else(missing)?;
    let doc = AssistantDoc { updated_ms: agents.now_ms(), used, ..doc };
    doc.save(agents.ports(), &scope(&caller)).await?;
    Ok(Json(doc.shape()))
}
