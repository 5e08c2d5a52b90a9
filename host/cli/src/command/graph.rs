//! `wattle graph`: shows and checks graphs, and clears node caches.

mod components;

use std::path::{Path, PathBuf};

use serde::Serialize;
use wattle_api::document::app::{AppDocument, GraphDocument};
use wattle_api::native::cache::ClearedCacheDocument;
use wattle_graph::check::{AnyPlugin, Problem, check_json, check_toml};
use wattle_graph::graph::Graph;
use wattle_graph::id::GraphName;
use wattle_graph::mermaid::xray;
use wattle_graph::suggest;

use crate::client::{Client, encode_segment};
use crate::command::app;
use crate::command::graph::components::Components;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::open_sandbox;
use crate::load::hinted_message::HintedMessage;
use crate::load::manifest::{FILE, Manifest};
use crate::load::{self, file, projections};
use crate::output::Output;

/// Prints the graphs of a file or folder without a server, or the graphs of a loaded app. Without a
/// target, the graphs of the app in the current folder are printed, or else those of the app in the
/// folder of the configuration.
pub(super) async fn show(
    config: Config,
    target: Option<&str>,
    output: Output,
) -> Result<Exit, Error> {
    let rendered = match target {
        Some(target) if !Path::new(target).exists() => fetch_loaded_graphs(config, target).await?,
        Some(target) => read_graphs(&config, Path::new(target)).await?,
        None => read_graphs(&config, &app::folder(&config, None)?).await?,
    };
    output.data(&rendered, |rendered: &Vec<MermaidGraph>| match rendered.as_slice() {
        [only] => only.mermaid.clone(),
        many => many
            .iter()
            .map(|it| format!("%% {}\n{}", it.graph, it.mermaid))
            .collect::<Vec<_>>()
            .join("\n\n"),
    });
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct MermaidGraph {
    graph: String,
    mermaid: String,
}

impl MermaidGraph {
    fn new(graph: &str, mermaid: String) -> Self {
        Self { graph: graph.to_owned(), mermaid }
    }
}

async fn read_graphs(config: &Config, path: &Path) -> Result<Vec<MermaidGraph>, Error> {
    let checked = read(config, path).await?;
    for problem in &checked.unloaded {
        Output::warning(&problem.to_string());
    }
    let graphs = checked.result.map_err(|problems| failed(&problems))?;
    let find = |name: &GraphName| graphs.iter().find(|graph| graph.name == *name);
    let rendered = graphs
        .iter()
        .map(|graph| MermaidGraph::new(graph.name.as_str(), xray(graph, &find)))
        .collect();
    Ok(rendered)
}

async fn fetch_loaded_graphs(config: Config, target: &str) -> Result<Vec<MermaidGraph>, Error> {
    let app = target.split('/').next().unwrap_or_default();
    let client = app::client(config, app).await?;
    let rendered = fetch_graphs(&client, target).await;
    client.close().await;
    rendered
}

async fn fetch_graphs(client: &Client, target: &str) -> Result<Vec<MermaidGraph>, Error> {
    let (app, graph) = target.split_once('/').unwrap_or((target, ""));
    let path = format!("/api/v1/apps/{}", encode_segment(app));
    let graphs = if graph.is_empty() {
        client.get::<AppDocument>(&path).await?.graphs
    } else {
        vec![graph.to_owned()]
    };
    let mut rendered = Vec::with_capacity(graphs.len());
    for graph in graphs {
        let document: GraphDocument =
            client.get(&format!("{path}/graphs/{}", encode_segment(&graph))).await?;
        rendered.push(MermaidGraph { graph, mermaid: document.mermaid });
    }
    Ok(rendered)
}

/// Reports all problems of the graphs of a folder or file. Without a target, the app in the current
/// folder is checked, or else the app in the folder of the configuration.
pub(super) async fn check(
    config: Config,
    target: Option<&str>,
    output: Output,
) -> Result<Exit, Error> {
    let path = match target {
        Some(target) => resolve_target(&config, target)?,
        None => app::folder(&config, None)?,
    };
    let checked = read(&config, &path).await?;
    for warning in &checked.unrequested {
        Output::warning(&warning.to_string());
    }
    let (graphs, found) = match checked.result {
        Ok(graphs) => (graphs.iter().map(|graph| graph.name.to_string()).collect(), Vec::new()),
        Err(problems) => (Vec::new(), problems),
    };
    let some_unloaded = !checked.unloaded.is_empty();
    let problems: Vec<Problem> = checked.unloaded.into_iter().chain(found).collect();
    let failed = !problems.is_empty();
    if output.json {
        output.json(&Report { graphs, problems: problems.iter().map(ProblemLine::from).collect() });
    } else if failed {
        for problem in &problems {
            Output::note(&problem.to_string());
        }
        let many = if problems.len() == 1 { "problem" } else { "problems" };
        let target = target.map_or_else(|| path.display().to_string(), str::to_owned);
        Output::error(&format!("{} {many} in `{target}`", problems.len()));
    } else {
        Output::line(&format!("no problems in {}", graphs.join(", ")));
    }
    if !checked.with_plugins {
        Output::note("checked without plugins: names and schemas of their nodes are not verified");
    } else if some_unloaded {
        Output::note("names and schemas of the nodes of these components are not verified");
    }
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

/// Clears the node cache of `app`, `app/graph` or `app/graph/node`.
pub(super) async fn clear_cache(
    client: &Client,
    target: &str,
    output: Output,
) -> Result<Exit, Error> {
    let mut parts = target.splitn(3, '/');
    let app = encode_segment(parts.next().unwrap_or_default());
    let query: Vec<String> = ["graph", "node"]
        .into_iter()
        .zip(parts)
        .map(|(key, part)| format!("{key}={}", encode_segment(part)))
        .collect();
    let path = format!("/api/v1/apps/{app}/cache?{}", query.join("&"));
    let cleared: ClearedCacheDocument = client.delete_with_response(&path).await?;
    output.data(&cleared, |cleared| format!("cleared {} entries", cleared.cleared));
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Report {
    graphs: Vec<String>,
    problems: Vec<ProblemLine>,
}

#[derive(Serialize)]
struct ProblemLine {
    file: String,
    line: Option<u32>,
    path: String,
    message: String,
    hint: Option<String>,
}

impl From<&Problem> for ProblemLine {
    fn from(problem: &Problem) -> Self {
        Self {
            file: problem.file.clone(),
            line: problem.line,
            path: problem.path.clone(),
            message: problem.message.clone(),
            hint: problem.hint.clone(),
        }
    }
}

/// Returns the target as a path, or the folder of the app with this name.
fn resolve_target(config: &Config, target: &str) -> Result<PathBuf, Error> {
    if Path::new(target).exists() {
        return Ok(target.into());
    }
    let mut apps = load::apps(config);
    apps.remove(target).ok_or_else(|| {
        let hint = "name an app folder, a `graph.toml`, or an app of the configuration";
        let question = suggest::did_you_mean(target, apps.keys().map(String::as_str));
        Error::NotFound {
            message: format!("there is no file, folder or app `{target}`"),
            hint: question.map_or_else(|| hint.to_owned(), |question| format!("{question} {hint}")),
        }
    })
}

struct Checked {
    result: Result<Vec<Graph>, Vec<Problem>>,
    /// Components that cannot be loaded.
    unloaded: Vec<Problem>,
    /// Imports of components of which the app requests nothing.
    unrequested: Vec<HintedMessage>,
    with_plugins: bool,
}

/// Checks an app folder with its plugins, or a file without plugins.
async fn read(config: &Config, path: &Path) -> Result<Checked, Error> {
    if path.is_dir() {
        return read_folder(config, path).await;
    }
    let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
    let file = path.display().to_string();
    let json = path.extension().is_some_and(|it| it == "json");
    let check = if json { check_json } else { check_toml };
    let result = check(&file, &text, &AnyPlugin);
    let (unloaded, unrequested) = (Vec::new(), Vec::new());
    Ok(Checked { result, unloaded, unrequested, with_plugins: false })
}

async fn read_folder(config: &Config, folder: &Path) -> Result<Checked, Error> {
    if !folder.join(FILE).is_file() {
        return Err(Error::NotFound {
            message: format!("`{}` has no `{FILE}`", folder.display()),
            hint: "name the folder of an app, or a `graph.toml`".into(),
        });
    }
    let manifest = Manifest::read(folder).map_err(Error::Failed)?;
    for refusal in manifest.refused_migrations(config, &load::grant_tables(config)) {
        Output::warning(&refusal.to_string());
    }
    let mut problems = projections::check_files(&manifest, config);
    for mut problem in projections::streams(folder).err().unwrap_or_default() {
        problem.file = folder.join(&problem.file).display().to_string();
        problems.push(problem);
    }
    let graphs = &manifest.app.graphs;
    let text = file::read_text(folder, graphs, file::DOCUMENT_BYTES)
        .map_err(|error| Error::Failed(error.to_string()))?;
    let file = folder.join(graphs).display().to_string();
    let sandbox = open_sandbox(config)?;
    let files = manifest.component_files(folder, config);
    let components = Components::load(&files, &manifest, config, sandbox.as_ref()).await;
    let catalog = components.catalog(&manifest.app.name, folder, &config.plugins);
    let checked = check_toml(&file, &text, &catalog);
    let result = if problems.is_empty() {
        checked
    } else {
        problems.extend(checked.err().unwrap_or_default());
        Err(problems)
    };
    let unloaded = components.problems(&text);
    let unrequested = components.unrequested_imports(&manifest.needs);
    Ok(Checked { result, unloaded, unrequested, with_plugins: true })
}

fn failed(problems: &[Problem]) -> Error {
    Error::Failed(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}
