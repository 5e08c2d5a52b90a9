//! Graphs by the ids that clients know them by, and the assistant that each has by itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;
use wattle_graph::definition::{BuiltIn, ReducerDef};
use wattle_graph::graph::Body;
use wattle_graph::id::{AppName, GraphName};
use wattle_project::agent_server::id::assistant_uuid;
use wattle_run::app::{App, GraphPack};
use wattle_run::catalog::Catalog;

use crate::doc::assistant::AssistantDoc;
use crate::fault::Fault;

/// How the refusal of an unknown assistant begins: programs look for these words.
const NOT_FOUND: &str = "Assistant not found";

/// A graph of a loaded app.
#[derive(Clone)]
pub(crate) struct AgentGraph {
    /// Its name, if no other app has a graph of that name; `app/graph` otherwise.
    pub(crate) id: String,
    /// Its app.
    pub(crate) app: Arc<App>,
    /// What runs.
    pub(crate) pack: Arc<GraphPack>,
    /// The assistant that a client made of it, if it is meant by that.
    pub(crate) made: Option<Made>,
}

/// An assistant that a client made.
#[derive(Clone)]
pub(crate) struct Made {
    /// Its id.
    pub(crate) id: Uuid,
    /// What is known of it.
    pub(crate) doc: AssistantDoc,
}

impl AgentGraph {
    /// The id of its assistant.
    pub(crate) fn assistant(&self) -> Uuid {
        self.made.as_ref().map_or_else(|| assistant_uuid(&self.id), |made| made.id)
    }

    /// Its name in the app.
    pub(crate) fn name(&self) -> &GraphName {
        &self.pack.graph.name
    }

    fn is(&self, app: &AppName, graph: &GraphName) -> bool {
        self.app.name == *app && self.name() == graph
    }

    fn answers_to(&self, wanted: &str) -> bool {
        let (app, graph) = (self.app.name.as_str(), self.name().as_str());
        self.id == wanted
            || wanted.split_once('/') == Some((app, graph))
            || (app == wanted && self.app.graphs.len() == 1)
    }
}

/// All graphs, by app and name.
pub(crate) fn all(catalog: &Catalog) -> Vec<AgentGraph> {
    let apps = catalog.apps();
    let is_unique =
        |name: &GraphName| apps.iter().filter(|app| app.graphs.contains_key(name)).count() == 1;
    let graph = |app: &Arc<App>, name: &GraphName, pack: &Arc<GraphPack>| AgentGraph {
        id: if is_unique(name) { name.to_string() } else { format!("{}/{name}", app.name) },
        app: app.clone(),
        pack: pack.clone(),
        made: None,
    };
    let of_app = |app: &Arc<App>| -> Vec<AgentGraph> {
        app.graphs.iter().map(|(name, pack)| graph(app, name, pack)).collect()
    };
    apps.iter().flat_map(of_app).collect()
}

/// A graph by its id.
pub(crate) fn by_id(catalog: &Catalog, id: &str) -> Option<AgentGraph> {
    all(catalog).into_iter().find(|graph| graph.id == id)
}

/// The graph of the assistant that it has by itself, named by its UUID or by the graph. For all
/// assistants see [`crate::assistants::find`].
///
/// # Errors
///
/// 404 for a UUID and 422 for a name that nothing has.
pub(crate) fn find(catalog: &Catalog, assistant: &str) -> Result<AgentGraph, Fault> {
    let graphs = all(catalog);
    if let Ok(uuid) = Uuid::try_parse(assistant) {
        let found = graphs.into_iter().find(|graph| graph.assistant() == uuid);
        return found.ok_or_else(|| Fault::not_found(format!("{NOT_FOUND}: `{assistant}`")));
    }
    let ids: Vec<String> = graphs.iter().map(|graph| format!("`{}`", graph.id)).collect();
    let found = graphs.iter().find(|graph| graph.id == assistant).cloned();
    let found = found.or_else(|| graphs.into_iter().find(|graph| graph.answers_to(assistant)));
    found.ok_or_else(|| {
        let known = ids.join(", ");
        let text = format!("{NOT_FOUND}: `{assistant}`; graphs are: {known}");
        Fault::unprocessable(text)
    })
}

/// A graph by the names that the engine has for it.
pub(crate) fn by_name(catalog: &Catalog, app: &AppName, graph: &GraphName) -> Option<AgentGraph> {
    all(catalog).into_iter().find(|known| known.is(app, graph))
}

/// The id of a graph, whether it is loaded or not.
pub(crate) fn id_of(catalog: &Catalog, app: &AppName, graph: &GraphName) -> String {
    by_name(catalog, app, graph).map_or_else(|| format!("{app}/{graph}"), |known| known.id)
}

/// Channels that hold conversations, of a graph and of its subgraphs.
pub(crate) fn conversations(app: &App, pack: &GraphPack) -> BTreeSet<String> {
    let (mut seen, mut channels) = (BTreeSet::new(), BTreeSet::new());
    collect(app, pack, &mut seen, &mut channels);
    channels
}

fn collect<'a>(
    app: &'a App,
    pack: &'a GraphPack,
    seen: &mut BTreeSet<&'a GraphName>,
    channels: &mut BTreeSet<String>,
) {
    if !seen.insert(&pack.graph.name) {
        return;
    }
    let conversation = ReducerDef::BuiltIn(BuiltIn::Messages);
    for (name, channel) in &pack.graph.definition().channels {
        if channel.reducer == conversation {
            channels.insert(name.to_string());
        }
    }
    for node in pack.graph.nodes().values() {
        if let Body::Graph { graph, .. } = &node.body
            && let Some(nested) = app.graphs.get(graph)
        {
            collect(app, nested, seen, channels);
        }
    }
}
