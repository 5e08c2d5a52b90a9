//! What authors read after the mistakes that they make first: every message says what is wrong,
//! where, and what to do.
//!
//! Mistakes in the signature of a node do not compile. The unit tests of `plugins/sdk/macros` have
//! their messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use wattle::load::manifest::Manifest;
use wattle::load::plugin_catalog::AppPluginCatalog;
use wattle_graph::check::check_toml;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, PluginName};
use wattle_graph::tool::ToolRequest;
use wattle_plugin::Failure;
use wattle_run::ports::Plugin;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{World, failure};
use wattle_suite::{guests, workspace};

use super::cli::Scene;

/// Returns a plugin with one node, which calls the plugin's only tool.
fn notes() -> NativePlugin {
    let plugin = NativePlugin::new("notes", "1").node("count_words", |_, gate| async move {
        let request = ToolRequest {
            tool: "count".into(),
            call_id: String::new(),
            arguments: json!({}),
            timeout_ms: None,
            state: None,
        };
        gate.call_tool(request).await?;
        Ok(json!({}))
    });
    plugin.tool("count", |_, _| async { Ok(json!(1)) })
}

/// A node without mistakes.
const NODE: &str = "node = \"count_words\"";

/// Returns the problems of a graph of an app with the plugin of [`notes`]. The node is on line 3,
/// and the rest begins on line 4.
fn problems(node: &str, rest: &str) -> Vec<String> {
    let graph = format!("[graphs.g]\nentry = \"a\"\nnodes.a = {{ {node} }}\n{rest}\n");
    let plugin: Arc<dyn Plugin> = Arc::new(notes());
    let own = BTreeMap::from([(plugin.info().name.clone(), plugin)]);
    let (app, loose) = (AppName::new("notes").unwrap(), BTreeMap::<PluginName, _>::new());
    let (folder, plugins_folder) = (Path::new("."), Path::new("plugins"));
    let catalog =
        AppPluginCatalog { app: &app, own: &own, standalone: &loose, folder, plugins_folder };
    let problems = check_toml("graph.toml", &graph, &catalog).err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

/// Returns a channel, and on the next line a branch that depends on it.
fn channel_and_branch(channel: &str, schema: &str, condition: &str) -> String {
    format!(
        "channels.{channel} = {{ schema = {schema} }}\n\
         branches = [{{ name = \"b\", from = \"a\", cases = [\
         {{ when = \"{condition}\", to = \"a\" }}, {{ to = \"END\" }}] }}]"
    )
}

#[tokio::test]
async fn a_panic_is_printed_once_with_its_text_file_and_line() {
    let scene = Scene::new().await;
    scene.workspace.add_misdeeds(super::sandbox::graphs().as_str());
    for quiet in [&[][..], &["--quiet"]] {
        let args = [&["run", "misdeeds/trap", "--input", "{}"][..], quiet].concat();
        let ended = scene.run(&args).await;
        assert_eq!(ended.code, 6, "{}", ended.text());
        let told: Vec<&str> = ended.stderr.split("trapped: a misdeed (").skip(1).collect();
        let [told] = told.as_slice() else { panic!("{}", ended.stderr) };
        let (_, line) = told.split_once("misdeeds/src/output.rs:").unwrap();
        assert!(line.starts_with(|first: char| first.is_ascii_digit()), "{}", ended.stderr);
        assert!(ended.stderr.contains("the run failed"), "{}", ended.stderr);
    }
}

/// An app whose components cannot be loaded, each for another reason.
const BROKEN_APP: &str = r#"
[app]
name = "broken"
version = "1"
[components]
cut = "cut.wasm"
empty = "empty.wasm"
missing = "missing.wasm"
text = "text.wasm"
"#;

const BROKEN_GRAPH: &str = r#"
[graphs.g]
entry = "a"
channels.number = {}
nodes.a = { plugin = "cut", node = "counter" }
nodes.b = { plugin = "empty", node = "counter" }
nodes.c = { plugin = "missing", node = "counter" }
nodes.d = { plugin = "text", node = "counter" }
nodes.e = { plugin = "standalone", node = "counter" }
edges = [
    { from = "a", to = "b" },
    { from = "b", to = "c" },
    { from = "c", to = "d" },
    { from = "d", to = "e" },
]
"#;

#[tokio::test]
async fn components_that_cannot_be_loaded_are_problems_of_the_graph() {
    let scene = Scene::new().await;
    let whole = guests::bytes(workspace::MISDEEDS);
    scene.workspace.write("plugins/broken/app.toml", BROKEN_APP);
    scene.workspace.write("plugins/broken/graph.toml", BROKEN_GRAPH);
    scene.workspace.write("plugins/broken/cut.wasm", &whole[..whole.len() / 2]);
    scene.workspace.write("plugins/broken/empty.wasm", "");
    scene.workspace.write("plugins/broken/text.wasm", "text");
    // A standalone plugin is a problem of graphs that use it.
    scene.workspace.write("plugins/standalone.wasm", "text");
    let checked = scene.run(&["graph", "check", "plugins/broken", "--json"]).await;
    assert_eq!(checked.code, 1, "{}", checked.text());
    let problems = checked.json()["problems"].clone();
    let problems = problems.as_array().unwrap();
    let expected = [
        ("broken/cut.wasm", ""),
        ("broken/empty.wasm", "it is empty"),
        ("broken/missing.wasm", "missing.wasm"),
        ("broken/text.wasm", "it is a text file, not WebAssembly"),
        ("plugins/standalone.wasm", "it is a text file, not WebAssembly"),
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, (file, message)) in problems.iter().zip(expected) {
        assert!(problem["file"].as_str().unwrap().ends_with(file), "{problem}");
        assert!(problem["message"].as_str().unwrap().contains(message), "{problem}");
        assert!(problem["hint"].is_string(), "{problem}");
    }
    let graph = "[graphs.g]\nentry = \"counter\"\nchannels.number = {}\nnodes.counter = {}\n";
    scene.workspace.add_misdeeds(graph);
    let checked = scene.run(&["graph", "check", "plugins/misdeeds"]).await;
    assert_eq!(checked.code, 0, "{}", checked.text());
}

#[test]
fn a_condition_that_cannot_be_evaluated_names_operator_and_types() {
    let rest = channel_and_branch("text", "{ type = \"string\" }", "state.text >= 5");
    let expected = "graph.toml:5: graphs.g.branches[0].cases[0].when: condition `state.text >= 5`: \
                    `>=` cannot be applied to string and int\n  hint: by schemas and reducers, \
                    channel `text` is string";
    assert_eq!(problems(NODE, &rest), [expected]);
}

#[tokio::test]
async fn a_tool_that_is_not_granted_is_denied_with_the_line_to_add() {
    let graph = format!("[graphs.g]\nentry = \"a\"\nnodes.a = {{ plugin = \"notes\", {NODE} }}\n");
    let failure = failure(&World::new(&graph, notes()).run(json!({})).await);
    assert_eq!(failure.code, code::DENIED, "{failure}");
    let expected = "plugin `notes` may not call the tool `count`; add `tools = [\"notes/count\"]` \
                    under `[grants.";
    assert!(failure.message.contains(expected), "{failure}");
}

#[test]
fn a_wrong_schema_is_one_problem_with_the_place_in_the_schema() {
    let rest = channel_and_branch("n", "{ type = \"intger\" }", "state.n > 1");
    let expected = "graph.toml:4: graphs.g.channels.n.schema: bad JSON schema: `intger` at `/type` \
                    is not a type; did you mean `integer`? the types are: `array`, `boolean`, \
                    `integer`, `null`, `number`, `object`, `string`";
    assert_eq!(problems(NODE, &rest), [expected]);
}

#[test]
fn typos_in_a_manifest_are_reported_at_once_with_folder_and_line() {
    let folder = TempDir::new().unwrap();
    let text = "[app]\nname = \"notes\"\nvesion = \"1\"\n[setings]\na = 1\n";
    fs::write(folder.path().join("app.toml"), text).unwrap();
    let file = folder.path().join("app.toml").display().to_string();
    let expected = format!(
        "{file}:3: unknown field `vesion`, expected one of `name`, `version`, `doc`, `web`, \
         `graphs`\n  hint: did you mean `version`?\n\
         {file}:4: unknown field `setings`\n  hint: did you mean `settings`? the tables are: \
         `app`, `components`, `needs`, `migrations`, `files`, `settings`, `page`, `build`"
    );
    assert_eq!(Manifest::read(folder.path()), Err(expected));
}

#[test]
fn an_unknown_node_or_plugin_lists_what_there_is() {
    let node = "graph.toml:3: graphs.g.nodes.a: plugin `notes` has no node `count_word`\n  hint: \
                did you mean `count_words`? nodes of plugin `notes`: `count_words`";
    assert_eq!(problems("node = \"count_word\"", ""), [node]);
    let plugin = "graph.toml:3: graphs.g.nodes.a: there is no plugin `nots`\n  hint: did you mean \
                  `notes`? plugins that the app can use: `notes`";
    assert_eq!(problems(&format!("plugin = \"nots\", {NODE}"), ""), [plugin]);
    let agent = "graph.toml:3: graphs.g.nodes.a: there is no plugin `std`\n  hint: plugins that \
                 the app can use: `notes`; put the file of `std` at `plugins/std.wasm` (in a \
                 checkout of Wattle, `cargo build --package wattle-std --target \
                 wasm32-unknown-unknown --profile guest` builds it as \
                 `target/wasm32-unknown-unknown/guest/wattle_std.wasm`)";
    assert_eq!(problems("plugin = \"std\"", ""), [agent]);
    let other = problems("plugin = \"math\"", "");
    assert!(other[0].ends_with("; put the file of `math` at `plugins/math.wasm`"), "{other:?}");
}

#[test]
fn configuration_of_a_node_that_takes_none_is_refused() {
    let found = problems(&format!("{NODE}, with = {{ style = \"short\" }}"), "");
    let expected = "graph.toml:3: graphs.g.nodes.a.with: node `count_words` of plugin `notes` \
                    takes no configuration\n  hint: remove `with` and `with_files`, or let the \
                    plugin publish the schema of the configuration, in Rust with \
                    `#[node(config = Config)]`";
    assert_eq!(found, [expected]);
}

#[test]
fn an_unconditional_edge_from_a_node_to_itself_is_refused() {
    let found = problems(NODE, r#"edges = [{ from = "a", to = "a" }]"#);
    let expected = "graph.toml:4: graphs.g.edges[0]: the cycle `a` -> `a` has unconditional edges \
                    only, so a run that enters it does not end\n  hint: use a branch in place of \
                    one of the edges, or list in `goto` of a node where it may go instead";
    assert_eq!(found, [expected]);
}

#[test]
fn errors_of_the_standard_library_are_failures_of_a_node() {
    fn count(text: &str) -> Result<i64, Failure> {
        Ok(text.parse()?)
    }
    assert_eq!(count("4"), Ok(4));
    let failure = count("four").unwrap_err();
    assert_eq!(failure.code, code::INVALID);
    assert_eq!(failure.message, "read an integer: invalid digit found in string");
}
