//! A plugins folder whose files are to read, fill or stop the host. Everything that is not a plain
//! file inside of the folder is refused with its path, and the valid app loads and runs.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use wattle_suite::guests;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::workspace::MISDEEDS;

use super::calm;

/// Files that are written at once.
const MANY: usize = 200;

/// Writes an app with a valid component and graphs. `head` and `tables` change its manifest.
fn app(setup: &Setup, name: &str, head: &str, tables: &str) {
    let manifest = format!(
        "[app]\nname = \"{name}\"\nversion = \"1\"\n{head}\n[components]\n{name} = \"{name}.wasm\"\n\
         {tables}\n"
    );
    setup.workspace.write(&format!("plugins/{name}/{name}.wasm"), guests::bytes(MISDEEDS));
    setup.workspace.write(&format!("plugins/{name}/graph.toml"), calm::HONEST);
    setup.workspace.write(&format!("plugins/{name}/app.toml"), manifest);
}

async fn problems(server: &TestServer) -> Vec<(String, String)> {
    let answer = server.get("/api/v1/problems").await;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let all = answer.body.as_array().cloned().unwrap_or_default();
    all.iter().map(|it| (text(&it["path"]), text(&it["message"]))).collect()
}

/// Returns the message that is reported for a path in the plugins folder.
fn of<'a>(problems: &'a [(String, String)], path: &str) -> &'a str {
    let mut found = problems.iter().filter(|(at, _)| Path::new(at).ends_with(path));
    found.next().map(|(_, message)| message.as_str()).unwrap_or_default()
}

#[tokio::test]
async fn only_plain_files_of_the_folder_are_loaded() {
    let setup = Setup::misdeeds(calm::HONEST).await;
    let outer = setup.workspace.root();
    let plugins = setup.workspace.plugins();
    setup.workspace.write("outside/graph.toml", calm::HONEST);
    setup.workspace.write("outside/app.toml", "[app]\nname = \"far\"\nversion = \"1\"\n");
    setup.workspace.write("outside/0001_x.sql", "CREATE TABLE loot (id INTEGER);");

    fs::create_dir_all(plugins.join("x")).unwrap();
    symlink("/dev/zero", plugins.join("x/endless.wasm")).unwrap();
    symlink(guests::path(MISDEEDS), plugins.join("alias.wasm")).unwrap();
    symlink(outer.join("outside"), plugins.join("linked")).unwrap();
    let pipe = plugins.join("pipe.wasm");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let _socket = UnixListener::bind(plugins.join("socket.wasm")).unwrap();
    File::create(plugins.join("sparse.wasm")).unwrap().set_len(1 << 42).unwrap();
    app(&setup, "above", "graphs = \"../../outside/graph.toml\"", "");
    app(&setup, "absolute", "graphs = \"/etc/passwd\"", "");
    app(&setup, "text", "", "");
    fs::remove_file(plugins.join("text/graph.toml")).unwrap();
    symlink(outer.join("outside/graph.toml"), plugins.join("text/graph.toml")).unwrap();
    app(&setup, "part", "", "");
    fs::remove_file(plugins.join("part/part.wasm")).unwrap();
    symlink(guests::path(MISDEEDS), plugins.join("part/part.wasm")).unwrap();
    app(&setup, "tables", "", "[migrations.store]\nsqlite = \"../../outside\"");
    app(&setup, "streams", "", "");
    symlink(outer.join("outside"), plugins.join("streams/streams")).unwrap();
    app(&setup, "manifest", "", "");
    fs::remove_file(plugins.join("manifest/app.toml")).unwrap();
    symlink("/dev/zero", plugins.join("manifest/app.toml")).unwrap();

    let setup = setup.with("[sql.store]\nurl = \"sqlite:store.db\"\n");
    let server = setup.start().await;
    let all = problems(&server).await;
    for (path, expected) in [
        ("x/endless.wasm", "is a symbolic link"),
        ("alias.wasm", "is a symbolic link"),
        ("linked", "is a symbolic link"),
        ("pipe.wasm", "is a device, a pipe or a socket"),
        ("socket.wasm", "is a device, a pipe or a socket"),
        ("sparse.wasm", "has more than 67108864 bytes"),
        ("above", "not the path of a file inside of the folder"),
        ("absolute", "not the path of a file inside of the folder"),
        ("text", "is a symbolic link"),
        ("part", "is a symbolic link"),
        ("tables", "not the path of a file inside of the folder"),
        ("streams", "is a symbolic link"),
        ("manifest", "is a symbolic link"),
    ] {
        let message = of(&all, path);
        assert!(message.contains(expected), "{path}: {message}\n{all:?}");
        assert!(message.contains("hint: "), "{path}: {message}");
    }
    assert_eq!(all.len(), 13, "{all:?}");
    calm::check(server).await;
}

/// Each part is below its limit, and sparse files take no place on the disk.
#[tokio::test]
async fn parts_of_an_app_are_limited_together() {
    const KEYS: usize = 20_000;
    let setup = Setup::misdeeds(calm::HONEST).await;
    let plugins = setup.workspace.plugins();
    let sparse = |path: &str, bytes: u64| {
        let path = plugins.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().set_len(bytes).unwrap();
    };
    app(&setup, "tables", "", "[migrations.store]\nsqlite = \"migrations\"");
    for number in 0..1_000 {
        sparse(&format!("tables/migrations/{number:04}_x.sql"), 16 << 20);
    }
    app(&setup, "streams", "", "");
    for number in 0..1_000 {
        sparse(&format!("streams/streams/{number}.toml"), 256 << 10);
    }
    app(&setup, "texts", "", "");
    sparse("texts/p", 256 << 10);
    let keys: String = (0..KEYS).map(|key| format!("{key}=\"p\"\n")).collect();
    let graph = format!("{}[graphs.honest.nodes.counter.with_files]\n{keys}", calm::HONEST);
    setup.workspace.write("plugins/texts/graph.toml", graph);
    app(&setup, "parts", "", "");
    let parts: String = (0..1_000).map(|part| format!("c{part} = \"parts.wasm\"\n")).collect();
    let manifest = format!("[app]\nname = \"parts\"\nversion = \"1\"\n[components]\n{parts}");
    setup.workspace.write("plugins/parts/app.toml", manifest);
    app(&setup, "page", "", "[page]\ntitle = \"Page\"\nfolder = \"page\"");
    for number in 0..1_001 {
        fs::create_dir_all(plugins.join(format!("page/page/{number}"))).unwrap();
    }

    let setup = setup.with("[sql.store]\nurl = \"sqlite:store.db\"\n");
    let server = setup.start().await;
    let all = problems(&server).await;
    for (path, expected) in [
        ("tables", "the migrations of the app have more than 67108864 bytes together"),
        ("streams", "the files of `streams` have more than 4194304 bytes together"),
        ("texts", "the texts of `with_files` have more than 4194304 bytes together"),
        ("parts", "more than 32 components"),
        ("page", "the page has more than 1000 files and folders"),
    ] {
        let message = of(&all, path);
        assert!(message.contains(expected), "{path}: {message}\n{all:?}");
    }
    assert_eq!(all.len(), 5, "{all:?}");
    calm::check(server).await;
}

/// The documents have as many levels as the parser accepts. Reading them would overflow the stack.
#[tokio::test]
async fn nested_documents_are_refused_and_others_load() {
    let key = vec!["a"; 80].join(".");
    let deep = (0..79).fold("1".to_owned(), |inner, _| format!("{{ {key} = {inner} }}"));
    let setup = Setup::misdeeds(calm::HONEST).await;
    app(&setup, "manifest", "", &format!("[settings]\nx = {deep}"));
    app(&setup, "graph", "", "");
    let graph = format!("{}with = {deep}\n", calm::HONEST);
    setup.workspace.write("plugins/graph/graph.toml", graph);
    app(&setup, "stream", "", "");
    setup.workspace.write("plugins/stream/streams/deep.toml", format!("constants = {deep}\n"));
    let server = setup.start().await;
    let all = problems(&server).await;
    for path in ["manifest", "graph", "stream"] {
        let message = of(&all, path);
        assert!(message.contains("nested deeper than 100 levels"), "{path}: {message}\n{all:?}");
    }
    assert_eq!(all.len(), 3, "{all:?}");
    calm::check(server).await;
}

#[tokio::test]
async fn many_new_files_are_checked_and_reported() {
    let setup = Setup::misdeeds(calm::HONEST).await;
    for number in 0..MANY {
        setup.workspace.write(&format!("plugins/f{number}.wasm"), format!("text {number}"));
    }
    let server = setup.start().await;
    assert_eq!(problems(&server).await.len(), MANY);
    calm::honest_run(&server).await;
    // Unchanged files are not checked again; the replaced file is.
    server.setup.workspace.write("plugins/f7.wasm", guests::bytes(MISDEEDS));
    let changes = server.running.reload().await;
    assert!(changes.len() <= 2, "{changes:?}");
    assert_eq!(problems(&server).await.len(), MANY - 1);
    calm::check(server).await;
}
