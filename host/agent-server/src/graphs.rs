//! Graphs by the ids that clients use, and their default assistants.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;
use wattle_graph::definition::{BuiltInReducer, ReducerDef};
use wattle_graph::failure::Failure;
use wattle_graph::graph::NodeKind;
use wattle_graph::id::{AppName, GraphName};
use wattle_graph::suggest;
use wattle_project::agent_server::id::assistant_uuid;
use wattle_run::app::{App, GraphVersion};
use wattle_run::catalog::Catalog;

use crate::error::ApiError;
use crate::records::assistant::AssistantRecord;

/// Beginning of the error for an unknown assistant. Client programs search for this text.
const ASSISTANT_NOT_FOUND: &str = "Assistant not found";

/// A graph of a loaded app.
#[derive(Clone)]
pub(crate) struct AgentGraph {
    /// The name of the graph if no other app has a graph of that name, `app/graph` otherwise.
    pub(crate) id: String,
    pub(crate) app: Arc<App>,
    /// The graph and its version.
    pub(crate) graph_version: Arc<GraphVersion>,
    /// The assistant that a client created, if the request selected one.
    pub(crate) stored: Option<StoredAssistant>,
}

/// An assistant that a client created.
#[derive(Clone)]
pub(crate) struct StoredAssistant {
    pub(crate) id: Uuid,
    /// The record of the assistant.
    pub(crate) record: AssistantRecord,
}

impl AgentGraph {
    /// Returns the id of the assistant.
    pub(crate) fn assistant(&self) -> Uuid {
        self.stored.as_ref().map_or_else(|| assistant_uuid(&self.id), |stored| stored.id)
    }

    /// Returns the name of the graph in its app.
    pub(crate) fn name(&self) -> &GraphName {
        &self.graph_version.graph.name
    }

    fn is_graph(&self, app: &AppName, graph: &GraphName) -> bool {
        self.app.name == *app && self.name() == graph
    }

    fn matches_name(&self, wanted: &str) -> bool {
        let (app, graph) = (self.app.name.as_str(), self.name().as_str());
        self.id == wanted
            || wanted.split_once('/') == Some((app, graph))
            || (app == wanted && self.app.graphs.len() == 1)
    }
}

/// Lists all graphs, by app and name.
pub(crate) fn list(catalog: &Catalog) -> Vec<AgentGraph> {
    let apps = catalog.apps();
    let is_unique =
        |name: &GraphName| apps.iter().filter(|app| app.graphs.contains_key(name)).count() == 1;
    let graph = |app: &Arc<App>, name: &GraphName, graph_version: &Arc<GraphVersion>| AgentGraph {
        id: if is_unique(name) { name.to_string() } else { format!("{}/{name}", app.name) },
        app: app.clone(),
        graph_version: graph_version.clone(),
        stored: None,
    };
    let of_app = |app: &Arc<App>| -> Vec<AgentGraph> {
        app.graphs.iter().map(|(name, graph_version)| graph(app, name, graph_version)).collect()
    };
    apps.iter().flat_map(of_app).collect()
}

/// Why a graph was not found.
#[derive(Debug)]
pub(crate) enum NotFound {
    /// No graph has the id.
    Unknown,
    /// An app that may have the graph is being loaded for the first time.
    Loading(Failure),
}

impl NotFound {
    /// Returns why a graph was not found. `check` fails while an app that may have the graph is
    /// being loaded.
    fn from_check(check: Result<(), Failure>) -> Self {
        check.err().map_or(Self::Unknown, Self::Loading)
    }

    /// Returns the error for the client: the result of `unknown`, or 503 if the request can succeed
    /// later.
    pub(crate) fn into_error(self, unknown: impl FnOnce() -> ApiError) -> ApiError {
        match self {
            Self::Unknown => unknown(),
            Self::Loading(failure) => failure.into(),
        }
    }
}

/// Finds a graph by its id.
pub(crate) fn by_id(catalog: &Catalog, id: &str) -> Result<AgentGraph, NotFound> {
    let found = list(catalog).into_iter().find(|graph| graph.id == id);
    found.ok_or_else(|| NotFound::from_check(catalog.check_all_loaded()))
}

/// Finds the graph of a default assistant, by the UUID of the assistant.
pub(crate) fn by_uuid(catalog: &Catalog, assistant: Uuid) -> Result<AgentGraph, NotFound> {
    let found = list(catalog).into_iter().find(|graph| graph.assistant() == assistant);
    found.ok_or_else(|| NotFound::from_check(catalog.check_all_loaded()))
}

/// Finds the graph of a default assistant, by the UUID of the assistant or by the id of the graph.
pub(crate) fn look_up(catalog: &Catalog, assistant: &str) -> Result<AgentGraph, NotFound> {
    if let Ok(uuid) = Uuid::try_parse(assistant) {
        return by_uuid(catalog, uuid);
    }
    let graphs = list(catalog);
    let found = graphs.iter().find(|graph| graph.id == assistant).cloned();
    let found = found.or_else(|| graphs.into_iter().find(|graph| graph.matches_name(assistant)));
    found.ok_or_else(|| NotFound::from_check(check_loaded(catalog, assistant)))
}

/// Checks that no app that may have a graph is being loaded for the first time.
fn check_loaded(catalog: &Catalog, assistant: &str) -> Result<(), Failure> {
    match assistant.split_once('/').map(|(app, _)| AppName::new(app)) {
        Some(Ok(app)) => catalog.check_loading(&app),
        _ => catalog.check_all_loaded(),
    }
}

/// Finds the graph of a default assistant that a request names, see [`look_up`].
/// [`crate::assistants::find`] also finds assistants that clients created.
///
/// # Errors
///
/// 404 for an unknown UUID, 422 for an unknown name, 503 while an app that may have the graph is
/// loaded for the first time.
pub(crate) fn find(catalog: &Catalog, assistant: &str) -> Result<AgentGraph, ApiError> {
    look_up(catalog, assistant).map_err(|why| {
        why.into_error(|| {
            if Uuid::try_parse(assistant).is_ok() {
                return ApiError::not_found(format!("{ASSISTANT_NOT_FOUND}: `{assistant}`"));
            }
            let hint = hint(catalog, assistant);
            ApiError::unprocessable(format!("{ASSISTANT_NOT_FOUND}: `{assistant}`; {hint}"))
        })
    })
}

/// Finds the graph of an assistant that a client creates or changes.
///
/// # Errors
///
/// 422 if `graph` is empty, 404 for an unknown graph, 503 while an app that may have the graph is
/// loaded for the first time. [`find`] returns 422 in place of 404 for an unknown graph.
pub(crate) fn find_for_assistant(catalog: &Catalog, graph: &str) -> Result<AgentGraph, ApiError> {
    if graph.is_empty() {
        return Err(ApiError::unprocessable("`graph_id` of the request is missing"));
    }
    look_up(catalog, graph).map_err(|why| {
        why.into_error(|| {
            let hint = hint(catalog, graph);
            ApiError::not_found(format!("there is no graph `{graph}`; {hint}"))
        })
    })
}

fn hint(catalog: &Catalog, wanted: &str) -> String {
    let graphs = list(catalog);
    hint_of_ids(wanted, &graphs.iter().map(|graph| graph.id.as_str()).collect::<Vec<_>>())
}

/// Returns the hint for an id that no graph has: the ids of the graphs with this name, or else the
/// most similar id and a selection of all ids.
fn hint_of_ids(wanted: &str, ids: &[&str]) -> String {
    let has_name = |id: &&str| id.split_once('/').is_some_and(|(_, name)| name == wanted);
    let named: Vec<&str> = ids.iter().copied().filter(has_name).collect();
    if named.is_empty() {
        return suggest::hint(wanted, "available graphs", ids.iter().copied());
    }
    let named = suggest::quoted_names(named.into_iter());
    format!("several apps have a graph of this name; use one of {named}")
}

/// Finds a graph by the names of its app and of the graph.
pub(crate) fn by_name(catalog: &Catalog, app: &AppName, graph: &GraphName) -> Option<AgentGraph> {
    list(catalog).into_iter().find(|known| known.is_graph(app, graph))
}

/// Returns the id of a graph, whether it is loaded or not.
pub(crate) fn graph_id(catalog: &Catalog, app: &AppName, graph: &GraphName) -> String {
    by_name(catalog, app, graph).map_or_else(|| format!("{app}/{graph}"), |known| known.id)
}

/// Returns the message channels of a graph and of its subgraphs.
pub(crate) fn message_channels(app: &App, graph_version: &GraphVersion) -> BTreeSet<String> {
    let (mut seen, mut channels) = (BTreeSet::new(), BTreeSet::new());
    collect_message_channels(app, graph_version, &mut seen, &mut channels);
    channels
}

fn collect_message_channels<'a>(
    app: &'a App,
    graph_version: &'a GraphVersion,
    seen: &mut BTreeSet<&'a GraphName>,
    channels: &mut BTreeSet<String>,
) {
    if !seen.insert(&graph_version.graph.name) {
        return;
    }
    let messages_reducer = ReducerDef::BuiltIn(BuiltInReducer::Messages);
    for (name, channel) in &graph_version.graph.definition().channels {
        if channel.reducer == messages_reducer {
            channels.insert(name.to_string());
        }
    }
    for node in graph_version.graph.nodes().values() {
        if let NodeKind::Graph { graph, .. } = &node.body
            && let Some(nested) = app.graphs.get(graph)
        {
            collect_message_channels(app, nested, seen, channels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_for_a_name_in_two_apps_says_that_it_is_ambiguous() {
        let ids = ["desk", "shop/main", "travel/main"];
        assert_eq!(
            hint_of_ids("main", &ids),
            "several apps have a graph of this name; use one of `shop/main`, `travel/main`"
        );
        let expected = "did you mean `desk`? available graphs: `desk`, `shop/main`, `travel/main`";
        assert_eq!(hint_of_ids("dsek", &ids), expected);
    }
}
