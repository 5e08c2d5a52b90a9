//! Files that change while the server runs.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use wattle::load::Change;
use wattle::server::{RunningServer, Server, ServerOptions};
use wattle_graph::id::{AppName, PluginName};

use crate::binary::said;
use crate::fixture::{Fixture, config, options, write_app};
use crate::native_sandbox::KNOWN;

#[tokio::test]
async fn a_new_app_is_loaded_and_a_broken_update_keeps_the_old_version() {
    let fixture = Fixture::start_in(tempfile::tempdir().unwrap(), "").await;
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 404);
    let plugins = fixture.folder.path().join("plugins");
    write_app(&plugins, "greeter");
    assert!(matches!(fixture.server.reload().await[..], [Change::App { .. }]));
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 200);
    assert!(fixture.server.reload().await.is_empty());

    std::fs::write(plugins.join("greeter/greeter.wasm"), "broken bytes").unwrap();
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::Problem { keeps_old: true, .. }]), "{changes:?}");
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 200);
    let (_, problems) = fixture.get("/api/v1/problems").await;
    assert!(problems[0]["message"].as_str().unwrap().contains("no component"), "{problems}");

    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("greeter/greeter.wasm"), "native again").unwrap();
    fixture.server.reload().await;
    assert_eq!(fixture.get("/api/v1/problems").await.1, json!([]));
    std::fs::remove_dir_all(plugins.join("greeter")).unwrap();
    assert!(matches!(fixture.server.reload().await[..], [Change::Removed { .. }]));
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 404);
}

/// The argument of a run whose node fails.
const FAILING_INPUT: &str = r#"--input={ "name": "fail: no" }"#;

#[tokio::test]
async fn a_failed_run_names_the_migration_if_the_app_has_changed() {
    let fixture = Fixture::start("").await;
    let folder = fixture.folder.path().to_owned();
    let printed = async |args: &'static [&'static str]| {
        let folder = folder.clone();
        tokio::task::spawn_blocking(move || said(&folder, args, None)).await.unwrap().1
    };
    let again = "run the failed nodes again with `wattle thread resume t`";
    let failed = printed(&["run", "greeter", "--thread=t", FAILING_INPUT]).await;
    assert!(failed.contains(again) && !failed.contains("migrate"), "{failed}");

    std::fs::write(folder.join("plugins/greeter/greeter.wasm"), "native and new").unwrap();
    fixture.server.reload().await;
    let failed = printed(&["thread", "resume", "t"]).await;
    let migration = format!("loaded code with `wattle thread migrate t`, and then {again}");
    assert!(failed.contains(&migration), "{failed}");
    let migrated = printed(&["thread", "migrate", "t"]).await;
    assert!(migrated.contains("\nmigrated\n"), "{migrated}");
    let failed = printed(&["thread", "resume", "t"]).await;
    assert!(failed.contains(again) && !failed.contains("migrate"), "{failed}");
}

#[tokio::test]
async fn all_problems_of_an_app_are_reported_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    let manifest = plugins.join("greeter/app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("web = \"greeter\"", "web = \"nobody\"")).unwrap();
    std::fs::write(plugins.join("greeter/graph.toml"), "[graphs.G]\nentry = \"x\"\n").unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let [Change::Problem { message, keeps_old: false, .. }] = &fixture.server.changes[..] else {
        panic!("{:?}", fixture.server.changes)
    };
    assert!(message.contains("`nobody`") && message.contains("graph.toml"), "{message}");
}

#[tokio::test]
async fn a_standalone_plugin_runs_in_the_graphs_that_name_it() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("shared.wasm"), "native shared").unwrap();
    let graph = "[graphs.G]\nentry = \"greet\"\n[graphs.G.channels.name]\n\
                 [graphs.G.channels.greeting]\n[graphs.G.nodes.greet]\nplugin = \"shared\"\n";
    std::fs::write(plugins.join("greeter/graph.toml"), graph).unwrap();
    let fixture = Fixture::start_in(folder, "").await;
    let (_, found) = fixture.get("/api/v1/plugins/shared").await;
    assert_eq!(found[0]["app"], "greeter");
    let start = json!({ "input": { "name": "Ada" }, "wait": true });
    let (_, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!(run["state"]["greeting"], "hello Ada", "{run}");

    // The plugin is loaded again. The app that uses the plugin does not change.
    let shared = std::fs::File::options().append(true).open(plugins.join("shared.wasm")).unwrap();
    shared.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::Plugin { .. }]), "{changes:?}");
    std::fs::write(plugins.join("shared.wasm"), "native and new").unwrap();
    let changes = fixture.server.reload().await;
    assert!(matches!(changes[..], [Change::Plugin { .. }, Change::App { .. }]), "{changes:?}");
}

const READS: &str = "memory = [{ namespace = [\"names\"] }]\n";

/// Writes an app with further tables in its manifest.
fn write_app_with(plugins: &Path, name: &str, tables: &str) {
    write_app(plugins, name);
    let manifest = plugins.join(name).join("app.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}{tables}")).unwrap();
}

/// Runs the app `greeter`, which reads the memory. Returns the code of the failure.
async fn refusal(fixture: &Fixture) -> Value {
    let start = json!({ "input": { "name": KNOWN }, "wait": true });
    let (_, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert!(run["run"].is_string(), "{run}");
    run["failure"]["code"].clone()
}

#[tokio::test]
async fn changed_grants_apply_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let needs = format!("[needs]\n{READS}");
    write_app_with(&folder.path().join("plugins"), "greeter", &needs);
    let fixture = Fixture::start_in(folder, "").await;
    let file = fixture.folder.path().join("wattle.toml");
    assert_eq!(refusal(&fixture).await, "denied");

    std::fs::write(&file, format!("[grants.greeter]\n{READS}")).unwrap();
    let changes = fixture.server.reload().await;
    let [Change::Grants { name, plugins, notes }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((name.as_str(), plugins.len(), notes.len()), ("greeter", 1, 0));
    assert_eq!(refusal(&fixture).await, Value::Null);
    assert!(fixture.server.reload().await.is_empty(), "nothing has changed since");

    // A file with an error changes nothing.
    std::fs::write(&file, "[grants.greeter]\nmemory = 1\n").unwrap();
    let changes = fixture.server.reload().await;
    let [Change::Problem { message, keeps_old: true, .. }] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert!(message.contains("`grants.greeter.memory`"), "{message}");
    assert_eq!(fixture.get("/api/v1/problems").await.1[0]["path"], file.display().to_string());
    assert_eq!(refusal(&fixture).await, Value::Null);

    std::fs::write(&file, "[clock]\ntime_zone = \"UTC\"\n").unwrap();
    let changes = fixture.server.reload().await;
    let [Change::Restart { sections, .. }, Change::Grants { notes, .. }] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!((&sections[..], notes.len()), (&["clock"][..], 1));
    assert_eq!(refusal(&fixture).await, "denied", "the grant was taken back");
    assert_eq!(fixture.get("/api/v1/problems").await.1, json!([]));
}

#[tokio::test]
async fn until_a_restart_a_changed_file_cannot_grant_folders_that_the_host_uses() {
    let fixture = Fixture::start("").await;
    let file = fixture.folder.path().join("wattle.toml");
    std::fs::create_dir_all(fixture.folder.path().join("data")).unwrap();
    // In the changed file, the folders no longer belong to the host, but the running server still
    // uses them.
    for (moved, granted, what) in [
        ("data = \"moved\"", "data", "the data folder"),
        ("plugins = \"moved\"", "plugins", "the plugins folder"),
    ] {
        let folders = format!("folders = [{{ path = \"{granted}\", guest = \"/data\" }}]");
        std::fs::write(&file, format!("{moved}\n[grants.greeter]\n{folders}\n")).unwrap();
        let changes = fixture.server.reload().await;
        let [Change::Problem { message, keeps_old: true, .. }] = &changes[..] else {
            panic!("{changes:?}")
        };
        assert!(message.contains("`grants.greeter.folders`"), "{message}");
        assert!(message.contains(&format!("and {what} overlap")), "{message}");
        let app = fixture.server.engine.catalog().app(&"greeter".parse().unwrap()).unwrap();
        assert!(app.grants_of(&"greeter".parse().unwrap()).folders.is_empty());
    }
}

#[tokio::test]
async fn an_app_that_lacks_a_grant_is_loaded_after_the_grant_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    let needs = "[needs]\nsql = [{ database = \"notes\", access = \"read-write\" }]\n";
    let tables = "[migrations.notes]\nsqlite = \"migrations\"\n";
    write_app_with(&plugins, "greeter", &format!("{needs}{tables}"));
    std::fs::create_dir_all(plugins.join("greeter/migrations")).unwrap();
    let database = "[sql.notes]\nurl = \"sqlite::memory:\"\n";
    let fixture = Fixture::start_in(folder, database).await;
    assert!(matches!(fixture.server.changes[..], [Change::Problem { .. }]));
    let grant = needs.replace("[needs]", "[grants.greeter]");
    let file = fixture.folder.path().join("wattle.toml");
    std::fs::write(file, format!("{database}{grant}")).unwrap();
    assert!(matches!(fixture.server.reload().await[..], [Change::App { .. }]));
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 200);
}

#[tokio::test]
async fn the_watcher_detects_changes() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    let watching = ServerOptions { watch: true, ..options() };
    let server = Server::start(config(folder.path(), ""), watching).await.unwrap();
    let become_apps = async |count: usize| {
        let reached = async {
            while server.engine.catalog().apps().len() != count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reached).await.unwrap();
    };
    // The first change is made immediately, possibly before the watch begins, in a folder that did
    // not exist when the server started.
    write_app(&plugins, "greeter");
    become_apps(1).await;
    write_app(&plugins, "welcomer");
    become_apps(2).await;
    std::fs::remove_dir_all(plugins.join("greeter")).unwrap();
    become_apps(1).await;
    // Editors write a new file and rename it to the name of the old file.
    let draft = folder.path().join("wattle.toml~");
    std::fs::write(&draft, "[grants.welcomer]\nllm = [\"chat\"]\n").unwrap();
    write_app_with(&plugins, "welcomer", "[needs]\nllm = [\"chat\"]\n");
    std::fs::rename(draft, folder.path().join("wattle.toml")).unwrap();
    grants_become(&server, "welcomer", true).await;
    server.shutdown().await;
}

/// Waits until an app is granted the route `chat`, or until it is no longer granted the route.
async fn grants_become(server: &RunningServer, app: &str, granted: bool) {
    let (name, plugin): (AppName, PluginName) = (app.parse().unwrap(), app.parse().unwrap());
    let is_granted = || {
        let app = server.engine.catalog().app(&name);
        app.is_some_and(|app| app.grants_of(&plugin).llm.contains("chat"))
    };
    let reached = async {
        while is_granted() != granted {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.unwrap();
}

/// Kubernetes replaces the files of a ConfigMap by replacing one link to a hidden folder.
#[cfg(unix)]
#[tokio::test]
async fn the_watcher_detects_a_replaced_link_to_the_configuration_file() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path();
    write_app_with(&base.join("plugins"), "greeter", "[needs]\nllm = [\"chat\"]\n");
    let replace = |version: &str, toml: &str| {
        std::fs::create_dir(base.join(version)).unwrap();
        std::fs::write(base.join(version).join("wattle.toml"), toml).unwrap();
        symlink(version, base.join("..data_tmp")).unwrap();
        std::fs::rename(base.join("..data_tmp"), base.join("..data")).unwrap();
    };
    replace("..1", "");
    symlink("..data/wattle.toml", base.join("wattle.toml")).unwrap();
    let watching = ServerOptions { watch: true, ..options() };
    let server = Server::start(config(base, ""), watching).await.unwrap();
    // The first change is possibly made before the watch begins.
    replace("..2", "[grants.greeter]\nllm = [\"chat\"]\n");
    grants_become(&server, "greeter", true).await;
    replace("..3", "[grants.greeter]\nllm = []\n");
    grants_become(&server, "greeter", false).await;
    server.shutdown().await;
}
