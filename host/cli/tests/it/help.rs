//! Texts of the command line: help screens and error messages.

use std::path::Path;
use std::process::Command;

/// Runs the binary in a folder and returns its exit code and output.
fn wattle(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_wattle"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let folder = folder.canonicalize().unwrap();
    let shown = format!(
        "exit: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr)
    );
    shown.replace(&folder.display().to_string(), "[FOLDER]")
}

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn help_screens() {
    let folder = empty();
    let screens: &[&[&str]] = &[
        &[],
        &["new"],
        &["build"],
        &["dev"],
        &["test"],
        &["serve"],
        &["run"],
        &["thread"],
        &["thread", "list"],
        &["thread", "show"],
        &["thread", "state"],
        &["thread", "history"],
        &["thread", "edit"],
        &["thread", "fork"],
        &["thread", "resume"],
        &["thread", "drain"],
        &["thread", "retry"],
        &["thread", "delete"],
        &["graph"],
        &["graph", "check"],
        &["graph", "clear-cache"],
        &["plugin"],
        &["plugin", "inspect"],
        &["thread", "calls"],
        &["thread", "settle"],
        &["thread", "migrate"],
        &["thread", "export"],
        &["thread", "copy"],
        &["thread", "prune"],
        &["trace"],
        &["replay"],
        &["bench"],
        &["eval"],
        &["sql"],
        &["sql", "reader"],
        &["store"],
        &["store", "backup"],
        &["store", "restore"],
        &["key"],
        &["key", "create"],
        &["key", "revoke"],
        &["hosts"],
        &["model"],
        &["model", "check"],
        &["mcp"],
        &["mcp", "check"],
        &["doctor"],
    ];
    for screen in screens {
        let args: Vec<&str> = screen.iter().copied().chain(["--help"]).collect();
        let name = format!("help {}", screen.join(" "));
        insta::assert_snapshot!(name.trim().replace(' ', "_"), wattle(folder.path(), &args));
    }
}

#[test]
fn an_unknown_command_is_a_usage_error() {
    insta::assert_snapshot!(wattle(empty().path(), &["fly"]));
}

#[test]
fn a_missing_configuration_file_is_named() {
    insta::assert_snapshot!(wattle(empty().path(), &["--config", "no.toml", "doctor"]));
    insta::assert_snapshot!(wattle(empty().path(), &["--config", "no.toml", "thread", "list"]));
}

#[test]
fn a_wrong_configuration_is_explained() {
    let folder = empty();
    std::fs::write(folder.path().join("wattle.toml"), "[server]\nport = 1\n[sotre]\n").unwrap();
    insta::assert_snapshot!(wattle(folder.path(), &["thread", "list"]));
}

#[test]
fn a_public_address_needs_keys() {
    let folder = empty();
    insta::assert_snapshot!(wattle(folder.path(), &["serve", "--listen", "0.0.0.0:0"]));
}

#[test]
fn commands_work_without_a_server() {
    let folder = empty();
    insta::assert_snapshot!(wattle(folder.path(), &["thread", "list"]));
    insta::assert_snapshot!(wattle(folder.path(), &["thread", "show", "no-such-thread"]));
    insta::assert_snapshot!(wattle(folder.path(), &["run", "no-such-app"]));
    insta::assert_snapshot!(wattle(folder.path(), &["run", "x", "--input", "{"]));
    insta::assert_snapshot!(wattle(folder.path(), &["graph", "check", "no-such-app"]));
}

#[test]
fn an_unknown_app_is_reported_with_the_configuration_and_without_a_data_folder() {
    let folder = empty();
    let app = folder.path().join("prices");
    std::fs::create_dir(&app).unwrap();
    std::fs::write(app.join("app.toml"), "[app]\nname = \"prices\"\nversion = \"0.1.0\"\n")
        .unwrap();
    std::fs::write(app.join("wattle.toml"), "").unwrap();
    let show = ["graph", "show", "pricez"];
    let unknown = |app: &str, hint: &str| {
        format!("exit: 4\n--- stdout\n--- stderr\nerror: there is no app `{app}`\n  hint: {hint}\n")
    };
    let none = "apps of the folder `[FOLDER]/plugins`: none; no configuration was found, because \
                this folder has no `wattle.toml`";
    let own = format!("{none}; use that of the app with `--config prices/wattle.toml`");
    assert_eq!(wattle(folder.path(), &["run", "prices"]), unknown("prices", &own));
    assert_eq!(wattle(folder.path(), &show), unknown("pricez", none));
    std::fs::write(folder.path().join("wattle.toml"), "[apps.prices]\npath = \"prices\"\n")
        .unwrap();
    let known = "did you mean `prices`? apps of the configuration `[FOLDER]/wattle.toml`: `prices`";
    assert_eq!(wattle(folder.path(), &show), unknown("pricez", known));
    let case = "{\"name\": \"a\", \"input\": {}, \"expect\": {\"/status\": \"completed\"}}\n";
    std::fs::write(folder.path().join("cases.jsonl"), case).unwrap();
    let eval = ["eval", "pricez", "--cases", "cases.jsonl"];
    assert_eq!(wattle(folder.path(), &eval), unknown("pricez", known));
    let text = wattle(folder.path(), &["run", "pricez", "--json"]);
    assert!(text.starts_with("exit: 4\n--- stdout\n{\n"), "{text}");
    assert!(text.contains("\"code\": \"not-found\""), "{text}");
    let detail = format!("\"detail\": \"there is no app `pricez`; {known}\"");
    assert!(text.contains(&detail) && text.ends_with("}\n--- stderr\n"), "{text}");
    assert!(!folder.path().join("data").exists());
}

#[test]
fn an_app_that_cannot_be_loaded_is_named_after_its_problem() {
    let folder = empty();
    let app = folder.path().join("plugins/prices");
    std::fs::create_dir_all(&app).unwrap();
    let manifest = "[app]\nname = \"prices\"\nversion = \"0.1.0\"\n";
    std::fs::write(app.join("app.toml"), manifest).unwrap();
    std::fs::write(app.join("graph.toml"), "[graphs.G]\nentry = \"b\"\n").unwrap();
    for args in [&["run", "prices"][..], &["graph", "show", "prices/G"]] {
        let text = wattle(folder.path(), args);
        assert!(text.starts_with("exit: 4\n--- stdout\n--- stderr\n"), "{text}");
        assert!(text.contains("warning: `[FOLDER]/plugins/prices` is not loaded: "), "{text}");
        let end = "\nerror: app `prices` is not loaded, because of the problem above\n";
        assert!(text.ends_with(end), "{text}");
    }
    let text = wattle(folder.path(), &["run", "prices", "--json"]);
    assert!(text.contains("\"code\": \"not-found\""), "{text}");
}

#[test]
fn a_configuration_that_the_store_rejects_has_its_exit_code() {
    let folder = empty();
    std::fs::write(folder.path().join("wattle.toml"), "[store]\nurl_env = \"STORE_URL\"\n")
        .unwrap();
    let text = wattle(folder.path(), &["thread", "list"]);
    let why = "error: cannot set up the store: the environment variable `STORE_URL` is not set\n";
    assert!(text.starts_with("exit: 3\n") && text.ends_with(why), "{text}");
}

#[test]
fn a_check_and_a_chart_without_an_argument_are_of_the_app_in_the_current_folder() {
    let folder = empty();
    let [check, show] = [["graph", "check"], ["graph", "show"]];
    for args in [check, show] {
        let text = wattle(folder.path(), &args);
        assert!(text.contains("error: there is no `app.toml` in this folder\n"), "{text}");
    }
    let manifest = "[app]\nname = \"prices\"\nversion = \"0.1.0\"\n";
    std::fs::write(folder.path().join("app.toml"), manifest).unwrap();
    std::fs::write(folder.path().join("graph.toml"), "[graphs.G]\nentry = \"b\"\n").unwrap();
    let problem = "[FOLDER]/graph.toml:2: graphs.G.entry: there is no node `b`\n";
    for args in [check, show] {
        let text = wattle(folder.path(), &args);
        assert!(text.starts_with("exit: 1\n") && text.contains(problem), "{text}");
    }
    let text = wattle(folder.path(), &check);
    assert!(text.ends_with("error: 1 problem in `[FOLDER]`\n"), "{text}");
}

#[test]
fn a_check_without_an_argument_falls_back_to_the_folder_of_the_configuration() {
    let folder = empty();
    let app = folder.path().join("prices");
    std::fs::create_dir(&app).unwrap();
    std::fs::write(app.join("wattle.toml"), "").unwrap();
    let check = ["graph", "check", "--config", "prices/wattle.toml"];
    let text = wattle(folder.path(), &check);
    let missing = "error: there is no `app.toml` in this folder, and none in `[FOLDER]/prices`, \
                   the folder of the configuration\n";
    assert!(text.starts_with("exit: 4\n") && text.contains(missing), "{text}");
    std::fs::write(app.join("app.toml"), "[app]\nname = \"prices\"\nversion = \"0.1.0\"\n")
        .unwrap();
    std::fs::write(app.join("graph.toml"), "[graphs.G]\nentry = \"b\"\n").unwrap();
    let text = wattle(folder.path(), &check);
    assert!(text.ends_with("error: 1 problem in `[FOLDER]/prices`\n"), "{text}");
}

#[test]
fn a_check_reports_the_problems_of_streams_with_those_of_graphs() {
    let folder = empty();
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    std::fs::create_dir(folder.path().join("streams")).unwrap();
    write("app.toml", "[app]\nname = \"prices\"\nversion = \"0.1.0\"\n");
    write("graph.toml", "[graphs.G]\nentry = \"b\"\n");
    write("streams/own.toml", "[[messages]]\non = \"x\"\ntext = \"\"\n");
    let text = wattle(folder.path(), &["graph", "check"]);
    for problem in [
        "\n[FOLDER]/streams/own.toml: message 1: unknown kind of event `x`",
        "\n[FOLDER]/graph.toml:2: graphs.G.entry: there is no node `b`\n",
        "\nerror: 2 problems in `[FOLDER]`\n",
    ] {
        assert!(text.starts_with("exit: 1\n") && text.contains(problem), "{text}");
    }
    let text = wattle(folder.path(), &["graph", "check", "--json"]);
    assert!(text.starts_with("exit: 1\n--- stdout\n{\n"), "{text}");
    assert!(text.contains("\"file\": \"[FOLDER]/streams/own.toml\""), "{text}");
    assert!(text.ends_with("}\n--- stderr\n"), "{text}");
}

#[test]
fn a_graph_is_checked_and_shown_without_anything_else() {
    let folder = empty();
    let good = "[graphs.G]\nentry = \"a\"\n[graphs.G.nodes.a]\nplugin = \"p\"\n";
    std::fs::write(folder.path().join("good.toml"), good).unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[graphs.G]\nentry = \"b\"\nshape = 1\n")
        .unwrap();
    insta::assert_snapshot!(wattle(folder.path(), &["graph", "check", "good.toml"]));
    insta::assert_snapshot!(wattle(folder.path(), &["graph", "show", "good.toml"]));
    insta::assert_snapshot!(wattle(folder.path(), &["graph", "check", "bad.toml"]));
    insta::assert_snapshot!(wattle(folder.path(), &["graph", "check", "bad.toml", "--json"]));
}
