//! Tests of the source tree: layers of crates, first lines and sizes of files, lengths of nodes,
//! words, import cycles, walks through the code, limits, requirements, what applications ship for
//! operators, versions of clients, the stack of guests, and tests that leave themselves out.
//! `shape` prints figures about the tree.

mod circles;
mod examples;
mod left_out;
mod limits;
mod nodes;
mod requirements;
mod shape;
mod versions;
mod walks;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use wattle_graph::call::CallKind;
use wattle_graph::event::EventKind;
use wattle_suite::guests::root;

/// The crates of this workspace that each crate may depend on. `cli -> api -> run -> graph`;
/// adapters implement the ports of `run` and do not depend on each other.
const EDGES: &[(&str, &[&str])] = &[
    ("host/graph", &[]),
    ("host/project", &["wattle-graph"]),
    ("host/run", &["wattle-graph"]),
    ("host/store", &["wattle-graph", "wattle-run"]),
    ("host/sandbox", &["wattle-graph", "wattle-run"]),
    ("host/model", &["wattle-graph", "wattle-run"]),
    ("host/net", &["wattle-graph", "wattle-run"]),
    ("host/sql", &["wattle-graph", "wattle-run"]),
    ("host/mcp", &["wattle-graph", "wattle-run"]),
    ("host/telemetry", &["wattle-graph", "wattle-project", "wattle-run"]),
    ("host/api", &["wattle-graph", "wattle-project", "wattle-run"]),
    ("host/agent-server", &["wattle-graph", "wattle-project", "wattle-run", "wattle-api"]),
    (
        "host/cli",
        &[
            "wattle-graph",
            "wattle-run",
            "wattle-store",
            "wattle-sandbox",
            "wattle-model",
            "wattle-net",
            "wattle-sql",
            "wattle-mcp",
            "wattle-telemetry",
            "wattle-project",
            "wattle-api",
            "wattle-agent-server",
        ],
    ),
    ("plugins/sdk", &["wattle-plugin-macros"]),
    ("plugins/sdk/macros", &[]),
    ("plugins/std", &["wattle-plugin"]),
    ("plugins/apps/asset", &["wattle-plugin"]),
    ("plugins/apps/expense", &["wattle-plugin"]),
    ("plugins/tools/date", &["wattle-plugin"]),
    ("plugins/tools/lark", &["wattle-plugin"]),
    ("plugins/apps/nl2sql", &["wattle-plugin"]),
    ("plugins/apps/reasoning", &["wattle-plugin"]),
    ("plugins/apps/travel", &["wattle-plugin"]),
    ("plugins/apps/notes", &["wattle-plugin"]),
];

/// Names that the pure crates must not use.
const IMPURE: &[&str] =
    &["tokio", "std::fs", "std::net", "std::thread", "SystemTime", "Instant::now", "rand::"];

/// The only files of the product that contain the names of host calls in the log, if projections
/// know the calls: one of the host, one of guests and one of the studio. Guests and the studio
/// cannot use the crates of the host and need only some of the names.
const CALL_NAMES: [&str; 3] =
    ["host/graph/src/call.rs", "plugins/sdk/src/runs/event.rs", "host/studio/src/api/call.ts"];

/// Names of events that other things have, too, with the only files that contain each. Two types of
/// events declare `asked`, and elicitations have a field of this name. Formats of clients have a
/// custom event `progress`.
const EVENT_NAMES: [(&str, &[&str]); 2] = [
    (
        "asked",
        &[
            "host/graph/src/elicitation.rs",
            "host/graph/src/event.rs",
            "host/project/src/outline.rs",
        ],
    ),
    (
        "progress",
        &[
            "host/project/src/ag_ui.rs",
            "host/project/src/agent_server/v1.rs",
            "host/project/src/agent_server/v2.rs",
            "host/project/src/ai_sdk.rs",
        ],
    ),
];

/// Names of events that any file may contain, because they are words for many other things.
const COMMON_EVENT_NAMES: [&str; 6] =
    ["answered", "custom", "log", "migrated", "settled", "streamed"];

/// The only files that look up host calls in the journal: the journal entry, and the ways to it. A
/// stream has reads in one batch, and an interrupt may be known before its call is looked up.
const LOOK_UPS: [&str; 4] = [
    "host/run/src/gate/entry.rs",
    "host/run/src/gate/interrupt.rs",
    "host/run/src/gate/pipeline.rs",
    "host/run/src/gate/stream.rs",
];

/// The only file that makes the event of a host call. Forks copy events.
const CALL_EVENT: &str = "host/run/src/gate/entry.rs";

/// Names of files with modules that only tests have.
const TEST_FILES: [&str; 3] = ["tests.rs", "testing.rs", "sample.rs"];

/// The maximum number of lines of a file.
const FILE_LINES: usize = 600;

#[test]
fn crates_depend_only_along_the_layers() {
    for (folder, allowed) in EDGES {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let ours = dependencies.lines().filter_map(|line| {
            let name = line.split(['.', ' ', '=']).next()?;
            (name == "wattle" || name.starts_with("wattle-")).then(|| name.to_owned())
        });
        for name in ours {
            assert!(allowed.contains(&name.as_str()), "{folder} must not depend on {name}");
        }
    }
}

#[test]
fn pure_crates_perform_no_io() {
    for file in ["host/graph/src", "host/project/src"].into_iter().flat_map(sources) {
        let text = fs::read_to_string(&file).unwrap();
        for word in IMPURE {
            assert!(!text.contains(word), "{} uses {word}", file.display());
        }
    }
}

#[test]
fn names_of_the_host_in_the_data_folder_are_in_one_file() {
    for file in sources("host/cli/src") {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !product(&text).contains("data.join(\""),
            "{} names a file of the data folder; the name belongs into `data_folder.rs`, so that \
             no app can use it",
            file.display()
        );
    }
}

#[test]
fn every_file_has_a_description_and_a_limited_size() {
    for folder in ["host", "plugins", "tests"] {
        for file in sources(folder) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("//!"), "{} does not start with `//!`", file.display());
            let lines = text.lines().count();
            assert!(lines <= FILE_LINES, "{} has {lines} lines", file.display());
        }
    }
}

#[test]
fn one_file_on_each_side_contains_the_names_of_calls() {
    let mut code = product_code();
    for file in files("host/studio/src", &["ts", "tsx"]) {
        let path = file.strip_prefix(root()).unwrap();
        code.insert(path.to_owned(), fs::read_to_string(&file).unwrap());
    }
    let allowed = BTreeSet::from(CALL_NAMES.map(Path::new));
    for name in CallKind::ALL.iter().map(|kind| kind.name()) {
        let found = files_with_text(&code, name);
        assert!(found.contains(Path::new(CALL_NAMES[0])), "`{name}` is in {found:?}");
        assert!(found.is_subset(&allowed), "`{name}` is in {found:?}");
    }
}

#[test]
fn host_calls_have_one_path_into_the_journal() {
    let mut code = product_code();
    code.retain(|path, _| path.starts_with("host/run/src"));
    let files = |has: fn(&str) -> bool| {
        let found = code.iter().filter(|(_, code)| has(code));
        found.map(|(path, _)| path.as_path()).collect::<BTreeSet<_>>()
    };
    assert_eq!(files(|code| code.contains(".look_up(")), LOOK_UPS.map(Path::new).into());
    assert_eq!(files(makes_call_event), [Path::new(CALL_EVENT)].into());
}

/// Returns true if the code has a `Called` with all its fields. Patterns and copies have `..`.
fn makes_call_event(code: &str) -> bool {
    let fields = code.split("Called {").skip(1);
    let mut fields = fields.map(|rest| rest.split('}').next().unwrap_or_default());
    fields.any(|fields| !fields.contains(".."))
}

/// Host and SDK derive the names of events from the variants of their types.
#[test]
fn no_other_file_contains_the_names_of_events() {
    let code = product_code();
    let allowed = BTreeMap::from(EVENT_NAMES);
    for name in EventKind::NAMES.iter().filter(|name| !COMMON_EVENT_NAMES.contains(name)) {
        let files = allowed.get(name).copied().unwrap_or_default();
        let files: BTreeSet<&Path> = files.iter().map(Path::new).collect();
        assert_eq!(files_with_text(&code, name), files, "`{name}`");
    }
}

/// Returns the code of host and guests, by file, without comments and tests.
fn product_code() -> BTreeMap<PathBuf, String> {
    let mut code = BTreeMap::new();
    for file in ["host", "plugins"].into_iter().flat_map(sources) {
        let path = file.strip_prefix(root()).unwrap();
        let is_test = TEST_FILES.iter().any(|name| path.ends_with(name));
        if !is_test && !path.components().any(|part| part.as_os_str() == "tests") {
            let text = fs::read_to_string(&file).unwrap();
            let lines = product(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
            code.insert(path.to_owned(), lines.collect::<Vec<_>>().join("\n"));
        }
    }
    code
}

/// Returns the files whose code has a string literal with this text.
fn files_with_text<'c>(code: &'c BTreeMap<PathBuf, String>, text: &str) -> BTreeSet<&'c Path> {
    let literal = format!("\"{text}\"");
    let found = code.iter().filter(|(_, code)| code.contains(&literal));
    found.map(|(path, _)| path.as_path()).collect()
}

/// Returns a source file without its tests, which are at the end of the file.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

#[test]
fn every_test_guest_has_a_test() {
    let suite: String =
        sources("tests/suite/tests").iter().map(|f| fs::read_to_string(f).unwrap()).collect();
    for guest in fs::read_dir(root().join("tests/guests")).unwrap() {
        let manifest = guest.unwrap().path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")).unwrap();
        let name = name.trim_end_matches('"');
        assert!(suite.contains(name), "guest {name} has no test");
    }
}

#[test]
fn guests_have_the_stack_of_new_apps_and_of_the_pages() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let config = read(".cargo/config.toml");
    let set = config.lines().find(|line| line.contains("stack-size")).unwrap();
    for file in [
        "host/cli/templates/rust/common/dot-cargo/config.toml",
        "host/docs/plugins.md",
        "plugins/sdk/README.md",
    ] {
        assert!(read(file).lines().any(|line| line == set), "{file} does not have `{set}`");
    }
    let (_, size) = set.split_once("-zstack-size=").unwrap();
    let of_c = format!("-Wl,-z,stack-size={}", size.trim_end_matches(['"', ']']));
    for file in ["host/cli/templates/c/common/app.toml", "plugins/sdk/c/README.md"] {
        assert!(read(file).contains(&of_c), "{file} does not have `{of_c}`");
    }
}

#[test]
fn wit_items_are_documented() {
    let folder = root().join("wit/wattle");
    let mut undocumented: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = fs::read_to_string(&file).unwrap();
        let mut documented = false;
        for line in text.lines().map(str::trim) {
            let item = ["interface ", "record ", "variant ", "world ", "resource "]
                .iter()
                .any(|word| line.starts_with(word))
                || line.contains(": func(");
            if item && !documented {
                undocumented.entry(file.clone()).or_default().push(line.to_owned());
            }
            documented = line.starts_with("///");
        }
    }
    // Methods of a resource may share the documentation of the resource if it is sufficient.
    undocumented.retain(|_, items| {
        items.retain(|item| !item.starts_with("query:") && !item.starts_with("execute:"));
        !items.is_empty()
    });
    assert!(undocumented.is_empty(), "{undocumented:#?}");
}

fn sources(folder: &str) -> Vec<PathBuf> {
    files(folder, &["rs"])
}

/// Returns the files below a folder whose extension is one of `endings`.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), endings, &mut found);
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                collect(&path, endings, found);
            }
        } else if path.extension().is_some_and(|ending| endings.iter().any(|it| ending == *it)) {
            found.push(path);
        }
    }
}
