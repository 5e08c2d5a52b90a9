//! `wattle build`: commands of an app make its component.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// Returns the command that runs the binary in a folder.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(args).current_dir(folder).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// Runs the binary in a folder.
fn wattle(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

/// Runs `wattle build` in a folder, and returns the exit code and the output.
fn build(folder: &Path) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = wattle(folder, &["build"]);
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Writes the manifest of an app whose component a script makes.
fn write(folder: &Path, script: &str) {
    let text = format!(
        "[app]\nname = \"dates\"\nversion = \"0.1.0\"\n[components]\ndate = \"bin/date.wasm\"\n\
         [build]\nenv = {{ WORD = \"compiling\" }}\nprepare = [[\"mkdir\", \".wattle/out\"]]\n\
         commands = [[\"sh\", \"-c\", '{script}']]\noutputs = {{ date = \".wattle/out/made.wasm\" }}\n"
    );
    fs::write(folder.join("app.toml"), text).unwrap();
}

#[test]
fn a_build_replaces_a_component_only_with_one_that_can_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shipped = shipped();
    let component = folder.join("bin/date.wasm");
    fs::create_dir(folder.join(".wattle")).unwrap();

    write(folder, "echo $WORD >&2; echo error in line 3; exit 1");
    let (code, said) = build(folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("compiling\nerror in line 3\nerror: `sh -c "), "{said}");
    assert!(!said.contains("hint"), "{said}");

    write(folder, "echo Error: Cannot find module x >&2; exit 1");
    let (code, said) = build(folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("delete `.wattle/prepared`, and the next build"), "{said}");

    write(folder, "true");
    let (code, said) = build(folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the build made no `") && said.contains("outputs"), "{said}");

    write(folder, "echo no component > .wattle/out/made.wasm");
    let (code, said) = build(folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("plugin `date`"), "{said}");
    assert!(!component.exists(), "a broken file takes no place");

    write(folder, &format!("cp \"{}\" .wattle/out/made.wasm", shipped.display()));
    let built = wattle(folder, &["build", "--json"]);
    let said = String::from_utf8_lossy(&built.stderr);
    assert_eq!(built.status.code(), Some(0), "{said}");
    for line in ["compiling `", "compiled `"] {
        assert!(said.contains(line), "{said}");
    }
    let report: Value = serde_json::from_slice(&built.stdout).unwrap();
    let [made] = report["components"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&made["name"], &made["changed"]), (&json!("date"), &json!(true)));
    assert!(!made["tools"].as_array().unwrap().is_empty(), "{made}");
    assert_eq!(fs::read(&component).unwrap(), fs::read(&shipped).unwrap());

    // A component with the same content is not written again, and a broken component does not
    // replace the installed one.
    let written = fs::metadata(&component).unwrap().modified().unwrap();
    assert_eq!(build(folder).0, Some(0));
    write(folder, "echo no component > .wattle/out/made.wasm");
    assert_eq!(build(folder).0, Some(1));
    assert_eq!(fs::metadata(&component).unwrap().modified().unwrap(), written);

    // A component is installed only together with all other components.
    fs::write(&component, "from before").unwrap();
    let script = format!("cp \"{}\" .wattle/out/made.wasm; echo no > late.wasm", shipped.display());
    write(folder, &script);
    let manifest = fs::read_to_string(folder.join("app.toml")).unwrap();
    let manifest = manifest
        .replace("date.wasm\"\n", "date.wasm\"\nlate = \"bin/late.wasm\"\n")
        .replace("made.wasm\" }", "made.wasm\", late = \"late.wasm\" }");
    fs::write(folder.join("app.toml"), manifest).unwrap();
    let (code, said) = build(folder);
    assert!(code == Some(1) && said.contains("plugin `late`"), "{said}");
    assert_eq!(fs::read(&component).unwrap(), b"from before");
}

/// Returns the shipped component of the plugin `date`.
fn shipped() -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/tools/date/date.wasm");
    file.canonicalize().unwrap()
}

/// Note of a build whose commands did not run.
const UNCHANGED: &str = "nothing has changed since the last build";

#[test]
fn the_commands_of_an_unchanged_app_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (output, component) = (folder.join(".wattle/out/made.wasm"), folder.join("bin/date.wasm"));
    let source = folder.join("src/date.c");
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(&source, "1").unwrap();
    let shipped = shipped();
    let script = format!("echo ran >> log; cp \"{}\" .wattle/out/made.wasm", shipped.display());
    write(folder, &script);
    // Returns the number of times that the commands have run.
    let runs_after = |args: &[&str]| {
        let Output { status, stderr, .. } = wattle(folder, args);
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(0), "{said}");
        let runs = fs::read_to_string(folder.join("log")).unwrap().lines().count();
        (runs, said.contains(UNCHANGED))
    };
    assert_eq!(runs_after(&["build"]), (1, false));
    assert_eq!(runs_after(&["build"]), (1, true));
    assert_eq!(runs_after(&["build", "--force"]), (2, false));

    fs::write(&source, "2").unwrap();
    assert_eq!(runs_after(&["build"]), (3, false));
    // Only the content of a source counts.
    fs::write(&source, "2").unwrap();
    assert_eq!(runs_after(&["build"]), (3, true));

    fs::write(&output, "changed").unwrap();
    assert_eq!(runs_after(&["build"]), (4, false));
    fs::remove_file(&output).unwrap();
    assert_eq!(runs_after(&["build"]), (5, false));
    fs::remove_file(&component).unwrap();
    assert_eq!(runs_after(&["build"]), (5, true));
    assert_eq!(fs::read(&component).unwrap(), fs::read(&shipped).unwrap());

    // A build that fails is not the last one to compare with.
    write(folder, "exit 1");
    assert_eq!(build(folder).0, Some(1));
    write(folder, &script);
    assert_eq!(runs_after(&["build"]), (6, false));
}

#[test]
fn tests_use_the_components_of_an_unchanged_app() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["src", "tests"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("src/date.c"), "1").unwrap();
    let case = "{\"name\": \"a\", \"input\": {}, \"expect\": {\"/status\": \"completed\"}}\n";
    fs::write(folder.join("tests/cases.jsonl"), case).unwrap();
    write(folder, &format!("cp \"{}\" .wattle/out/made.wasm", shipped().display()));
    assert_eq!(build(folder).0, Some(0));
    let said = String::from_utf8(wattle(folder, &["test"]).stderr).unwrap();
    assert!(said.contains(UNCHANGED), "{said}");
}

#[test]
fn an_app_without_sources_is_always_built() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, &format!("cp \"{}\" .wattle/out/made.wasm", shipped().display()));
    for _ in 0..2 {
        let (code, said) = build(folder);
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains(UNCHANGED), "{said}");
    }
}

/// Starts `wattle build` in a folder. Returns the process and its output.
fn begin(folder: &Path) -> (Child, impl BufRead) {
    let mut begun = command(folder, &["build"]).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(begun.stderr.take().unwrap());
    (begun, said)
}

/// Asserts that a build has failed at the last command of its script.
fn assert_reached_the_end((mut begun, mut said): (Child, impl BufRead)) {
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert_eq!(begun.wait().unwrap().code(), Some(1), "{text}");
    assert!(text.contains("exit status: 7"), "{text}");
}

#[test]
fn builds_of_an_app_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let gate = folder.join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // If a script finds the folder `busy`, another script is running at the same time.
    write(folder, "mkdir busy || exit 3; read line < gate; rmdir busy; exit 7");
    let open = || File::options().write(true).open(&gate).unwrap();
    let first = begin(folder);
    // The first script has opened the other end of the pipe.
    let held = open();
    let mut second = begin(folder);
    let mut line = String::new();
    second.1.read_line(&mut line).unwrap();
    assert!(line.starts_with("waiting for another build that uses `"), "{line}");
    drop(held);
    assert_reached_the_end(first);
    drop(open());
    assert_reached_the_end(second);
}

#[test]
fn an_app_without_a_build_section_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = build(folder.path());
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("there is no `app.toml` in this folder"), "{said}");
    let manifest = "[app]\nname = \"notes\"\nversion = \"1\"\n";
    fs::write(folder.path().join("app.toml"), manifest).unwrap();
    let (code, said) = build(folder.path());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("has no `[build]`"), "{said}");
}

#[test]
fn a_missing_component_of_an_app_with_a_build_section_names_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let check = || {
        let Output { status, stderr, .. } = wattle(folder, &["graph", "check", "."]);
        assert_eq!(status.code(), Some(1));
        String::from_utf8(stderr).unwrap()
    };
    write(folder, "true");
    let graph = "[graphs.g]\nentry = \"a\"\nnodes.a = { plugin = \"date\", node = \"a\" }\n";
    fs::write(folder.join("graph.toml"), graph).unwrap();
    fs::create_dir(folder.join("bin")).unwrap();
    let said = check();
    assert!(said.contains("date.wasm` cannot be read: "), "{said}");
    assert!(said.contains("\n  hint: run `wattle build .`\n"), "{said}");

    // A server finds the same problem.
    let config = "data = \".wattle/data\"\nplugins = \".wattle/plugins\"\n\
                  [apps.dates]\npath = \".\"\n";
    fs::write(folder.join("wattle.toml"), config).unwrap();
    let said = wattle(folder, &["run", "dates"]).stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("\n  hint: run `wattle build "), "{said}");

    let manifest = fs::read_to_string(folder.join("app.toml")).unwrap();
    let (manifest, _) = manifest.split_once("[build]").unwrap();
    fs::write(folder.join("app.toml"), manifest).unwrap();
    let said = check();
    assert!(said.contains("\n  hint: build it for wasm32-unknown-unknown"), "{said}");
}

#[test]
fn the_configuration_of_an_app_folder_is_used_where_there_is_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("notes");
    fs::create_dir(&app).unwrap();
    fs::write(app.join("app.toml"), "[app]\nname = \"notes\"\nversion = \"1\"\n").unwrap();
    fs::write(app.join("wattle.toml"), "colour = 1\n").unwrap();
    let build = |app: &str| {
        let Output { status, stderr, .. } = wattle(folder.path(), &["build", app]);
        (status.code(), String::from_utf8(stderr).unwrap())
    };
    let (code, said) = build("notes");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("`notes/wattle.toml` is not valid"), "{said}");
    fs::write(folder.path().join("wattle.toml"), "[apps.notes]\npath = \"notes\"\n").unwrap();
    for app in ["notes", "./notes"] {
        let (code, said) = build(app);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("has no `[build]`"), "{said}");
    }
}
