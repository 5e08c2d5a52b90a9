//! `wattle dev`: an app is built and run again after each change.

use wattle_suite::binary;
use wattle_suite::guests;
use wattle_suite::workspace::{HEAD_TOML, MISDEEDS, Workspace};

/// A graph of one node that counts.
const COUNT: &str = "[graphs.main]\nentry = \"counter\"\nchannels.number = {}\n\
                     nodes.counter = {}\n";

/// The graph with a second node that counts.
const COUNT_TWICE: &str = "nodes.again = { node = \"counter\" }\n\
                           [[graphs.main.edges]]\nfrom = \"counter\"\nto = \"again\"\n";

/// A graph of one node that logs messages.
const LOG: &str = "[graphs.main]\nentry = \"flood_log\"\nchannels.count = {}\n\
                   channels.numbers = {}\nchannels.number = {}\nnodes.flood_log = {}\n";

/// A graph of one node that panics.
const TRAP: &str = "[graphs.main]\nentry = \"trap\"\nnodes.trap = {}\n";

/// A graph of one node that stores a document in the memory.
const REMEMBER: &str = "[graphs.main]\nentry = \"remember\"\nchannels.namespace = {}\n\
                        channels.key = {}\nchannels.document = {}\nchannels.ttl_ms = {}\n\
                        channels.refreshed = {}\nchannels.found = {}\nnodes.remember = {}\n";

/// Returns the manifest of an app whose component a script makes from a guest.
fn manifest() -> String {
    let guest = guests::path(MISDEEDS).display().to_string();
    format!(
        "[app]\nname = \"counts\"\nversion = \"0.1.0\"\n[components]\ncounts = \"counts.wasm\"\n\
         [build]\nenv = {{ GUEST = \"{guest}\", PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n\
         commands = [[\"sh\", \"src/build.sh\"]]\noutputs = {{ counts = \".wattle/made.wasm\" }}\n"
    )
}

fn script(said: &str) -> String {
    format!("echo {said}\nmkdir -p .wattle\ncp \"$GUEST\" .wattle/made.wasm\n")
}

#[tokio::test]
async fn an_app_is_built_and_run_again_after_each_change() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.write("wattle.toml", HEAD_TOML);
    workspace.write("counts/app.toml", manifest());
    workspace.write("counts/graph.toml", COUNT);
    workspace.write("counts/src/build.sh", script("first"));
    let mut dev = binary::start(&workspace, &["dev", "counts", "--input", "@input.json"]);
    let mut sees = async |part: &str| dev.ready(|line| line.contains(part)).await.unwrap();

    // The component is built, and the error in the input is reported.
    sees("first").await;
    sees("nodes").await;
    sees("cannot read `input.json`").await;
    workspace.write("input.json", "{\"number\": 5}");
    sees("\"number\": 6").await;
    sees("counter finished").await;

    workspace.write("counts/graph.toml", format!("{COUNT}{COUNT_TWICE}"));
    sees("\"number\": 7").await;

    // After a build that fails, the app stays as it was.
    workspace.write("counts/src/build.sh", "echo second; exit 3");
    sees("`sh src/build.sh` failed: exit status: 3").await;
    workspace.write("input.json", "{\"number\": 10}");
    sees("\"number\": 12").await;

    workspace.write("counts/src/build.sh", script("third"));
    sees("third").await;
    sees("as before").await;
}

#[tokio::test]
async fn an_app_is_run_again_after_new_grants_in_a_file_outside_of_its_folder() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    let memory = "memory = [{ namespace = [\"users\"], access = \"read-write\" }]\n";
    let config = |grants: &str| format!("{HEAD_TOML}[grants.counts]\n{grants}");
    workspace.write("wattle.toml", config("llm = []\n"));
    workspace.write("counts/app.toml", format!("{}[needs]\n{memory}", manifest()));
    workspace.write("counts/graph.toml", REMEMBER);
    workspace.write("counts/src/build.sh", script("first"));
    let input = "{\"namespace\": [\"users\"], \"key\": \"k\", \"document\": {\"text\": \"tea\"}}";
    let mut dev = binary::start(&workspace, &["dev", "counts", "--input", input]);
    let mut sees = async |part: &str| dev.ready(|line| line.contains(part)).await.unwrap();
    sees("may not write the memory under").await;
    sees("host calls").await;

    workspace.write("wattle.toml", config(memory));
    sees("new calls of `counts` in app `counts` have other grants").await;
    sees("remember finished").await;
}

#[tokio::test]
async fn a_message_that_the_guest_logs_is_printed() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.write("wattle.toml", HEAD_TOML);
    workspace.write("counts/app.toml", manifest());
    workspace.write("counts/graph.toml", LOG);
    workspace.write("counts/src/build.sh", script("first"));
    let input = "{\"count\": 1, \"numbers\": 0}";
    let mut dev = binary::start(&workspace, &["dev", "counts", "--input", input]);
    dev.ready(|line| line.contains("flood_log: info: flood")).await.unwrap();
}

#[tokio::test]
async fn the_trace_has_the_details_of_a_failure() {
    let workspace = Workspace::new();
    workspace.share_compiled_code();
    workspace.write("wattle.toml", HEAD_TOML);
    workspace.write("counts/app.toml", manifest());
    workspace.write("counts/graph.toml", TRAP);
    workspace.write("counts/src/build.sh", script("first"));
    let mut dev = binary::start(&workspace, &["dev", "counts", "--input", "{}"]);
    let mut sees = async |part: &str| dev.ready(|line| line.contains(part)).await.unwrap();
    sees("trapped: a misdeed").await;
    sees("trap: \"unreachable\"").await;
}
