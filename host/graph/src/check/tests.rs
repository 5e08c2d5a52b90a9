//! Snapshots of the problems of documents.

mod reads;
mod subgraphs;
mod sums;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    AnyPlugin, NodeReads, NodeSchema, PluginCatalog, check_archived_toml, check_json, check_toml,
};
use crate::graph::NodeKind;
use crate::id::PluginName;
use crate::mermaid::mermaid;

/// A catalog with one plugin, `app`, whose nodes and schemas a table lists.
#[derive(Default)]
struct App {
    nodes: BTreeMap<&'static str, (Value, Value)>,
    reads: BTreeMap<&'static str, NodeReads>,
}

impl App {
    fn with(mut self, node: &'static str, input: Value, output: Value) -> Self {
        self.nodes.insert(node, (input, output));
        self
    }

    /// Sets the channels that a node declares it reads.
    fn reading(mut self, node: &'static str, reads: Value) -> Self {
        self.reads.insert(node, serde_json::from_value(reads).unwrap());
        self
    }
}

impl PluginCatalog for App {
    fn node(&self, _: &PluginName, node: &str) -> Option<NodeSchema> {
        let (input_schema, output_schema) = self.nodes.get(node)?.clone();
        let doc = format!("doc of {node}");
        let config_schema = match node {
            "configured" => Some(json!({
                "type": "object", "required": ["route"], "additionalProperties": false,
                "properties": { "route": { "type": "string" } },
            })),
            "flexible" => Some(json!({})),
            _ => None,
        };
        let node_reads = self.reads.get(node).cloned();
        let may_pause = node == "asks";
        Some(NodeSchema { doc, input_schema, output_schema, config_schema, node_reads, may_pause })
    }

    fn has_plugin(&self, plugin: &PluginName) -> bool {
        plugin.as_str() == "app"
    }

    fn has_reducer(&self, _: &PluginName, reducer: &str) -> bool {
        reducer == "known"
    }

    fn plugins(&self) -> Vec<PluginName> {
        PluginName::new("app").into_iter().collect()
    }

    fn nodes(&self, _: &PluginName) -> Vec<String> {
        self.nodes.keys().map(|name| (*name).to_owned()).collect()
    }

    fn reducers(&self, _: &PluginName) -> Vec<String> {
        vec!["known".to_owned()]
    }

    fn default_plugin(&self) -> Option<PluginName> {
        PluginName::new("app").ok()
    }

    fn read_text(&self, path: &str) -> Result<String, String> {
        let known = (path == "prompts/a.md").then(|| "You book.\n".to_owned());
        known.ok_or_else(|| format!("`{path}` cannot be read"))
    }
}

fn problems(text: &str, facts: &dyn PluginCatalog) -> String {
    match check_toml("graph.toml", text, facts) {
        Ok(_) => "no problems".to_owned(),
        Err(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n")
        }
    }
}

/// Compares the problems of a document with the snapshot `name`.
fn check(name: &str, text: &str, facts: &dyn PluginCatalog) {
    insta::with_settings!({ description => text, omit_expression => true }, {
        insta::assert_snapshot!(name, problems(text, facts));
    });
}

#[test]
fn misspelled_names_get_a_suggestion() {
    let text = "[graphs.g]\nentry = \"a\"\nrecursion = 5\n\
                channels.talk = { reducer = \"mesages\" }\nnodes.a = { node = \"known\" }\n\
                [[graphs.g.branches]]\nfrom = \"a\"\n\
                cases = [{ when = \"state.tlak == 1\", to = \"END\" }]\n";
    let found = problems(text, &AnyPlugin);
    for hint in ["`recursion_limit`?", "`messages`?", "`talk`? channels of this graph: `talk`"] {
        assert!(found.contains(&format!("hint: did you mean {hint}")), "{found}");
    }
}

const GOOD: &str = r#"
[graphs.AssetGraph]
doc = "Looks at an asset."
entry = ["ingest"]
recursion_limit = 25
interrupt_ttl = "30m"
interrupt_before = ["enrich"]
interrupt_after = "*"

[graphs.AssetGraph.channels.inputType]
schema = { enum = ["image", "text"] }
doc = "What was given."

[graphs.AssetGraph.channels.notes]
schema = { type = "array" }
reducer = "append"
default = []

[graphs.AssetGraph.channels.votes]
reducer = { plugin = "app", reducer = "known" }

[graphs.AssetGraph.nodes.ingest]
retry = { attempts = 3, initial = "500ms", factor = 2.0, max = "128s", on = ["timeout"] }
timeout = "60s"

[graphs.AssetGraph.nodes.image]
node = "classify"

[graphs.AssetGraph.nodes.text]
plugin = "app"
node = "classify"

[graphs.AssetGraph.nodes.enrich]
goto = ["ingest", "END"]

[[graphs.AssetGraph.edges]]
from = ["image", "text"]
to = "enrich"

[[graphs.AssetGraph.edges]]
from = "enrich"
to = "END"

[[graphs.AssetGraph.branches]]
name = "routeInput"
from = "ingest"
cases = [
  { when = "state.inputType == 'image'", to = "image" },
  { when = "state.notes != null && size(state.notes) > 0", to = ["image", "text"] },
  { to = "text" },
]
"#;

fn asset() -> App {
    let input = json!({ "properties": { "inputType": { "type": "string" } } });
    let output = json!({ "properties": { "notes": { "type": "string" } } });
    App::default().with("ingest", input, output.clone()).with("classify", json!({}), output).with(
        "enrich",
        json!(null),
        json!(null),
    )
}

#[test]
fn valid_document_becomes_a_graph() {
    let graph = check_toml("graph.toml", GOOD, &asset()).unwrap().remove(0);
    assert_eq!((graph.recursion_limit(), graph.interrupt_ttl_ms()), (25, Some(1_800_000)));
    let ingest = &graph.nodes()["ingest"];
    assert_eq!((ingest.retries[0].attempts, ingest.timeout.run_ms), (3, Some(60_000)));
    assert_eq!(ingest.reads.as_ref().unwrap().len(), 1);
    let NodeKind::Plugin { export, .. } = &graph.nodes()["text"].body else { panic!() };
    assert_eq!(export, "classify");
    assert_eq!(graph.nodes()["enrich"].reads, None);
    assert!(graph.interrupts_before(&"enrich".parse().unwrap()));
    assert!(!graph.interrupts_before(&"text".parse().unwrap()));
    assert!(graph.interrupts_after(&"text".parse().unwrap()));
    insta::assert_snapshot!("mermaid", mermaid(&graph));
}

#[test]
fn toml_and_json_have_the_same_digest() {
    let table: Value = toml::from_str(GOOD).unwrap();
    let from_toml = check_toml("graph.toml", GOOD, &asset()).unwrap();
    let from_json = check_json("graph.json", &table.to_string(), &asset()).unwrap();
    assert_eq!(from_toml[0].digest, from_json[0].digest);
    let other = GOOD.replace("30m", "1800s").replace("factor = 2.0", "factor = 2");
    assert_eq!(check_toml("graph.toml", &other, &asset()).unwrap()[0].digest, from_toml[0].digest);
    let changed = GOOD.replace("30m", "31m");
    assert_ne!(
        check_toml("graph.toml", &changed, &asset()).unwrap()[0].digest,
        from_toml[0].digest
    );
}

#[test]
fn syntax_errors_have_a_line() {
    check("syntax", "[graphs.g]\nentry = \n", &AnyPlugin);
    let problems = check_json("graph.json", "{\n \"graphs\": [,]\n}", &AnyPlugin).unwrap_err();
    assert_eq!((problems.len(), problems[0].line), (1, Some(2)));
}

#[test]
fn a_document_that_is_nested_too_deeply_is_one_problem_with_its_line() {
    let deep = format!("[graphs.g]\nentry = {}1{}", "{ a.a = ".repeat(60), "}".repeat(60));
    let problems = check_toml("graph.toml", &deep, &AnyPlugin).unwrap_err();
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let message = "tables and arrays are nested deeper than 100 levels";
    assert_eq!(problems, [format!("graph.toml:2: {message}")]);
}

#[test]
fn all_invalid_fields_are_reported() {
    let text = r#"
extra = 1
[graphs."1g"]
entry = "a"
nodes.a = {}
[graphs.g]
entry = 3
recursion_limit = -1
interrupt_ttl = "soon"
color = "red"
[graphs.g.channels."bad name"]
[graphs.g.channels.c]
reducer = "avarage"
schma = {}
[graphs.g.nodes.a]
retry = { attempts = 3, wait = "1s" }
timeout = 30
[[graphs.g.edges]]
form = "a"
to = "a"
[[graphs.g.branches]]
name = "b"
mode = "some"
from = "a"
cases = [{ if = "true", to = "a" }, { to = 1 }]
"#;
    check("form", text, &AnyPlugin);
}

#[test]
fn unknown_names_are_reported() {
    let text = r#"
[graphs.g]
entry = ["a", "x1"]
interrupt_before = ["x2"]
interrupt_after = "x3"
channels.c = {}
[graphs.g.nodes.a]
goto = "x4"
[graphs.g.nodes.b]
plugin = "other"
[graphs.g.nodes.d]
[graphs.g.nodes.END]
[[graphs.g.edges]]
from = ["a", "x5"]
to = ["b", "d", "x6"]
[[graphs.g.edges]]
from = "END"
to = []
[[graphs.g.branches]]
name = "b"
from = "x7"
cases = [{ when = "state.c == 1 && state.x8 == 2", to = "x9" }, { to = "END" }]
"#;
    let app = App::default().with("a", json!({}), json!({})).with("END", json!({}), json!({}));
    check("names", text, &app);
}

#[test]
fn incomplete_edges_and_branches_are_reported() {
    let text = r#"
[graphs.empty]
[graphs.g]
entry = "a"
recursion_limit = 0
interrupt_ttl = "0s"
nodes.a = { timeout = "0s", retry = { attempts = 0, factor = 0.5, on = [] } }
nodes.lost = {}
nodes.island = {}
[[graphs.g.edges]]
from = "lost"
to = "island"
[[graphs.g.edges]]
[[graphs.g.branches]]
name = "b"
from = "a"
cases = [{ when = "1 <", to = "a" }, { to = "END" }, { when = "state == null", to = "END" }]
[[graphs.g.branches]]
name = "b"
from = "a"
[[graphs.g.branches]]
cases = [{ when = "kind == 1", to = [] }]
"#;
    check("ways", text, &AnyPlugin);
}

#[test]
fn a_cycle_that_no_run_leaves_is_reported() {
    let graph = |nodes: &str, edges: &str| {
        format!("[graphs.g]\nentry = 'a'\nnodes = {{ {nodes} }}\nedges = [\n{edges}\n]\n")
    };
    let nodes = ["a", "b", "c", "asks"].into_iter();
    let app = nodes.fold(App::default(), |app, node| app.with(node, json!({}), json!({})));
    let line = "{ from = 'a', to = 'b' },\n{ from = 'b', to = ['c', 'END'] },\n";
    let back = &format!("{line}{{ from = ['c', 'c'], to = 'b' }}");
    for (text, place) in [
        (graph("a = {}", "{ from = 'a', to = 'a' }"), "5: graphs.g.edges[0]: the cycle `a` -> `a`"),
        (
            graph("a = {}, b = {}, c = {}", back),
            "7: graphs.g.edges[2]: the cycle `b` -> `c` -> `b`",
        ),
    ] {
        let found = problems(&text, &app);
        assert_eq!(found.lines().count(), 2, "{found}");
        assert!(found.starts_with(&format!("graph.toml:{place} has")), "{found}");
        assert!(check_archived_toml("graph.toml", &text, &app).is_ok(), "{text}");
    }
    let branch = "branches = [{ name = 'b', from = 'c', cases = [{ to = 'b' }] }]";
    let breakpoint = "interrupt_before = 'c'";
    for text in [
        graph("a = {}, b = {}, c = { goto = 'END' }", back),
        graph("a = {}, b = {}, c = {}", back) + breakpoint,
        graph("a = {}, b = {}, c = { node = 'asks' }", back),
        graph("a = {}, b = {}, c = { on_error = 'a' }", back),
        graph("a = {}, b = {}, c = { graph = 'h' }", back)
            + "channels.x = {}\n[graphs.h]\nentry = 'a'\nnodes.a = {}\nchannels.x = {}\n\
               edges = [{ from = 'a', to = 'a' }]\n",
        graph("a = {}, b = {}, c = {}", line) + branch,
        graph("a = {}, b = {}, c = {}", &format!("{line}{{ from = ['b', 'c'], to = 'b' }}")),
    ] {
        assert_eq!(problems(&text, &app), "no problems", "{text}");
    }
}

#[test]
fn conditions_must_fit_the_values_of_channels() {
    let graph = |condition: &str| {
        format!(
            r#"
[graphs.g]
entry = "a"
channels.text = {{ schema = {{ type = "string" }} }}
channels.log = {{ reducer = "append" }}
channels.open = {{}}
channels.order = {{ schema = {{ properties.total.type = "number", additionalProperties = false }} }}
nodes.a = {{}}
[[graphs.g.branches]]
name = "b"
from = "a"
cases = [{{ when = "{condition}", to = "a" }}, {{ to = "END" }}]
"#
        )
    };
    let place = "graph.toml:12: graphs.g.branches[0].cases[0].when: condition";
    for (condition, expected) in [
        (
            "state.text >= 5 && state.log > 1",
            "`>=` cannot be applied to string and int\n  hint: by schemas and reducers, channel \
             `log` is list, channel `text` is string",
        ),
        ("state.open.lenght() > 1", "there is no function `lenght`"),
        (
            "state.open == null || state.text",
            "`||` cannot be applied to bool and string\n  hint: by schemas and reducers, channel \
             `text` is string",
        ),
        (
            "state.order.total > 'x'",
            "`>` cannot be applied to number and string\n  hint: by schemas and reducers, \
             `state.order.total` is number",
        ),
        (
            "state.order.totl > 1",
            "`state.order` has no property `totl`: did you mean `total`? properties: `total`",
        ),
    ] {
        let text = graph(condition);
        let found = problems(&text, &AnyPlugin);
        assert!(found.starts_with(&format!("{place} `{condition}`: {expected}")), "{found}");
        assert!(check_archived_toml("graph.toml", &text, &AnyPlugin).is_ok(), "{condition}");
    }
    for condition in ["state.text > 'a' || size(state.log) > state.open", "state.open"] {
        assert_eq!(problems(&graph(condition), &AnyPlugin), "no problems", "{condition}");
    }
}

#[test]
fn channels_must_match_their_reducers() {
    let text = r#"
[graphs.g]
entry = "a"
nodes.a = {}
channels.a = { schema = { type = "strin" } }
channels.b = { schema = { type = "integer" }, default = "x" }
channels.c = { schema = { type = "string" }, reducer = "append" }
channels.d = { reducer = "sum", default = "0" }
channels.e = { reducer = "merge", default = [] }
channels.f = { reducer = { plugin = "nobody", reducer = "known" } }
channels.g = { reducer = { plugin = "app", reducer = "unknown" } }
channels.h = { schema = { type = ["integer", "null"] }, reducer = "max", default = 3 }
"#;
    check("channels", text, &App::default().with("a", json!({}), json!({})));
}

#[test]
fn run_context_must_match_the_context_schema() {
    let app = App::default().with("a", json!({}), json!({}));
    let text = |schema: &str| {
        format!("[graphs.g]\nentry = \"a\"\nnodes.a = {{}}\ncontext_schema = {schema}\n")
    };
    let fine = text(r#"{ type = "object", required = ["user"] }"#);
    let graphs = check_toml("graph.toml", &fine, &app).unwrap();
    for fits in [json!(null), json!({ "user": 1 })] {
        assert_eq!(graphs[0].check_context(&fits), Ok(()));
    }
    let refused = graphs[0].check_context(&json!({})).unwrap_err();
    assert_eq!(refused.code, "invalid");
    assert!(refused.message.contains("`context_schema` of graph `g`"), "{refused}");
    let broken = problems(&text(r#"{ type = "strin" }"#), &app);
    assert!(broken.contains("graph.toml:4: graphs.g.context_schema: bad JSON schema"), "{broken}");
}

#[test]
fn node_schemas_must_match_channels() {
    let text = r#"
[graphs.g]
entry = ["a", "b"]
channels.text = { schema = { type = "string" } }
channels.list = { schema = { type = "array" }, reducer = "append" }
channels.one = {}
nodes = { a = {}, b = {}, c = {} }
edges = [{ from = "a", to = "c" }]
"#;
    let output = |name: &str, kind: &str| json!({ "properties": { name: { "type": kind } } });
    let app = App::default()
        .with(
            "a",
            output("missing", "string"),
            json!({ "properties": { "one": {}, "list": { "type": "string" } } }),
        )
        .with("b", json!({}), json!({ "properties": { "one": {}, "gone": {}, "list": {} } }))
        .with("c", json!({}), output("text", "integer"));
    check("schemas", text, &app);
}

#[test]
fn nothing_is_compared_with_a_bad_schema() {
    let text = r#"
[graphs.g]
entry = ["a", "inner"]
channels.n = { schema = { type = "intger" }, reducer = "any" }
nodes.a = {}
nodes.inner = { graph = "h" }
branches = [{ name = "b", from = "a", cases = [{ when = "state.n > 1", to = "a" }, { to = "END" }] }]
[graphs.h]
entry = "a"
channels.n = { schema = { type = "string" }, reducer = "any" }
nodes.a = {}
"#;
    let app =
        App::default().with("a", json!({}), json!({ "properties": { "n": { "type": "string" } } }));
    let found = problems(text, &app);
    assert_eq!(found.lines().count(), 1, "{found}");
    let expected = "graph.toml:4: graphs.g.channels.n.schema: bad JSON schema: `intger` at `/type`";
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn node_configuration_must_match_the_schema_of_the_plugin() {
    let app = App::default().with("configured", json!({}), json!({}));
    let graph = |with: &str| {
        format!("[graphs.g]\nentry = 'configured'\n[graphs.g.nodes.configured]\n{with}")
    };
    assert_eq!(problems(&graph("with = { route = 'chat' }"), &app), "no problems");
    let missing = problems(&graph(""), &app);
    assert!(missing.contains("\"route\" is a required property"), "{missing}");
    let wrong = problems(&graph("with = { route = 1, colour = 'red' }"), &app);
    assert!(wrong.contains("is not of type") && wrong.contains("colour"), "{wrong}");
    let graph = check_toml("graph.toml", &graph("with = { route = 'chat' }"), &app).unwrap();
    let node = graph[0].nodes().values().next().unwrap();
    assert_eq!(**node.config, json!({ "route": "chat" }));
}

#[test]
fn configuration_of_a_node_without_one_is_refused() {
    let app = App::default().with("a", json!({}), json!({}));
    let graph = |with: &str| format!("[graphs.g]\nentry = 'a'\n[graphs.g.nodes.a]\n{with}\n");
    for (with, line) in
        [("with = { route = 'chat' }", 4), ("with_files = { system = 'prompts/a.md' }", 3)]
    {
        let found = problems(&graph(with), &app);
        let expected = format!(
            "graph.toml:{line}: graphs.g.nodes.a.with: node `a` of plugin `app` takes no \
             configuration\n  hint: remove `with`"
        );
        assert!(found.starts_with(&expected), "{found}");
        assert!(check_archived_toml("graph.toml", &graph(with), &app).is_ok(), "{with}");
    }
}

#[test]
fn files_of_with_files_become_keys_of_with() {
    let app = App::default().with("flexible", json!({}), json!({}));
    let graph =
        |with: &str| format!("[graphs.g]\nentry = \"flexible\"\nnodes.flexible = {{ {with} }}\n");
    let with = "with = { route = \"chat\" }, with_files = { system = \"prompts/a.md\" }";
    let from_file = check_toml("graph.toml", &graph(with), &app).unwrap().remove(0);
    let with = "with = { route = \"chat\", system = \"You book.\\n\" }";
    let inline = check_toml("graph.toml", &graph(with), &app).unwrap().remove(0);
    assert_eq!(from_file.digest, inline.digest);
    for (with, expected) in [
        ("with_files = { system = \"gone.md\" }", "`gone.md` cannot be read"),
        ("with = { a = 1 }, with_files = { a = \"prompts/a.md\" }", "`with` also has the key `a`"),
        ("with = 1, with_files = { a = \"prompts/a.md\" }", "must be a table"),
    ] {
        let found = problems(&graph(with), &app);
        assert!(found.contains(expected), "{found}");
    }
}
