//! New apps in each language: their components are built from the SDKs in the binary, their cases
//! pass, and their graphs do the same in every language. The packages that builds need are those that
//! are installed for other tests, so no network is used. The kind `app` is built in every language. A
//! build takes a second in C and seconds in TypeScript, so all kinds are built in C, and also a tool
//! in TypeScript. `cargo xtask peers` builds all kinds in all languages.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::clients;
use wattle_suite::binary::{self, CommandOutput};
use wattle_suite::guests;
use wattle_suite::workspace::{self, Workspace};

/// Variables of the test that builds need: where programs are, and what cargo and rustup use.
const PASSED_ON: [&str; 5] = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];

/// Returns the input of the graph of a kind of apps, and what a run makes of it in every language.
fn example(kind: &str) -> (Value, Value) {
    let (name, greeting) = ("Zoë \"Z\" 🍎", "Hello, Zoë \"Z\" 🍎!");
    let greeted = json!({ "name": name, "greeting": greeting });
    let (input, status, state, questions) = match kind {
        "app" => {
            let payload = json!({ "greeting": greeting });
            let question =
                json!({ "node": "approve", "payload": payload, "schema": { "type": "boolean" } });
            (json!({ "name": name }), "interrupted", greeted, vec![question])
        }
        "tool" => {
            let text = " zwei\nWörter 🍎 ";
            let counted = json!({ "text": text, "words": 3 });
            (json!({ "text": text }), "completed", counted, Vec::new())
        }
        "node" => (json!({ "name": name }), "completed", greeted, Vec::new()),
        other => panic!("there is no kind `{other}`"),
    };
    (input, json!({ "status": status, "state": state, "questions": questions }))
}

/// Returns what the document of a run says without ids and times.
fn outcome(run: &Value) -> Value {
    let interrupts = run["interrupts"].as_array().into_iter().flatten();
    let questions = interrupts.map(|it| {
        json!({ "node": it["node"], "payload": it["payload"], "schema": it["response_schema"] })
    });
    let questions: Vec<Value> = questions.collect();
    json!({ "status": run["status"], "state": run["state"], "questions": questions })
}

/// A new app.
struct New {
    kind: &'static str,
    workspace: Workspace,
    env: Vec<(String, String)>,
}

impl New {
    /// Makes an app in a language with the binary.
    #[expect(clippy::disallowed_methods, reason = "a build runs programs of the machine")]
    async fn make(language: &str, kind: &'static str) -> Self {
        let workspace = Workspace::new();
        let made =
            binary::run(&workspace, &["new", "hello", "--lang", language, "--kind", kind]).await;
        assert_eq!(made.code, 0, "{}", made.text());
        let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
        let env = PASSED_ON.iter().filter_map(|name| variable(name)).collect();
        let new = Self { kind, workspace, env };
        workspace::share_compiled_code(&new.folder().join(".wattle/data"));
        new
    }

    fn folder(&self) -> PathBuf {
        self.workspace.root().join("hello")
    }

    fn set(&mut self, name: &str, value: impl Display) {
        self.env.push((name.to_owned(), value.to_string()));
    }

    /// Removes the commands that install packages, sets the environment of the others, and replaces
    /// a path in them.
    fn prepared(&self, from: &str, to: &Path) {
        let file = self.folder().join("app.toml");
        let text = fs::read_to_string(&file).unwrap();
        let (head, build) = text.split_once("[build]\n").unwrap();
        assert!(build.contains(from), "{build}");
        let (before, rest) = build.split_once("prepare").unwrap_or((build, ""));
        let after = rest.find("\ncommands").map_or("", |at| &rest[at + 1..]);
        let env: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        let build = format!("{before}{after}").replace(from, &to.display().to_string());
        let text = format!("{head}[build]\nenv = {{ {} }}\n{build}", env.join(", "));
        fs::write(&file, text).unwrap();
        fs::create_dir_all(self.folder().join(".wattle/build")).unwrap();
    }

    async fn wattle(&self, args: &[&str]) -> CommandOutput {
        binary::run(&self.workspace, args).await
    }

    /// Builds the app and runs its cases, and then its graph, which does what it does in every
    /// language.
    async fn works(&self) {
        let tested = self.wattle(&["test", "hello", "--json"]).await;
        assert_eq!(tested.code, 0, "{}", tested.text());
        assert!(tested.json()["passed"].as_u64() > Some(0), "{}", tested.text());
        let config = self.folder().join("wattle.toml").display().to_string();
        let (input, expected) = example(self.kind);
        let input = input.to_string();
        let args = ["run", "hello", "--json", "--quiet", "--config", &config, "--input", &input];
        let ran = self.wattle(&args).await;
        assert!([0, 5].contains(&ran.code), "{}", ran.text());
        assert_eq!(outcome(&ran.json()), expected, "{}", ran.text());
    }
}

#[tokio::test]
async fn a_new_app_in_rust_runs() {
    let mut new = New::make("rust", "app").await;
    // The packages that the workspace has, in the same versions and with what cargo has compiled.
    fs::copy(guests::root().join("Cargo.lock"), new.folder().join("Cargo.lock")).unwrap();
    let built = guests::path("hello");
    // The build does not follow the variable, which would leave the output of an earlier build.
    new.set("CARGO_TARGET_DIR", new.folder().join(".wattle/elsewhere").display());
    new.set("CARGO_NET_OFFLINE", true);
    new.prepared(".wattle/target", built.ancestors().nth(3).unwrap());
    new.works().await;
}

#[tokio::test]
async fn a_new_app_and_a_new_tool_in_typescript_run() {
    let packages = need!(clients::packages());
    for kind in ["app", "tool"] {
        let new = New::make("typescript", kind).await;
        // What `npm install` makes of `package.json`: packages, and a link to the SDK.
        let own = new.folder().join("node_modules");
        fs::create_dir(&own).unwrap();
        for entry in fs::read_dir(&packages).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            if !name.to_string_lossy().starts_with('.') && name != "wattle-plugin" {
                std::os::unix::fs::symlink(entry.path().canonicalize().unwrap(), own.join(name))
                    .unwrap();
            }
        }
        std::os::unix::fs::symlink("../.wattle/sdk", own.join("wattle-plugin")).unwrap();
        new.prepared("node_modules", &own);
        new.works().await;
    }
}

#[tokio::test]
async fn a_new_app_in_python_runs() {
    let python = need!(clients::python("toolchains-py", "python"));
    let mut new = New::make("python", "app").await;
    let sources = new.folder().join(".wattle/sdk/src");
    new.set("PYTHONPATH", sources.display());
    new.prepared(".wattle/venv/bin/python", &python);
    new.works().await;
}

#[tokio::test]
async fn a_new_app_of_each_kind_in_c_runs() {
    let python = need!(clients::python("toolchains-py", "python"));
    // The library of C that the compiler has built for other tests.
    let environment = python.ancestors().nth(2).unwrap();
    let cache = environment.with_file_name(clients::TOOLCHAINS).join("zig");
    for kind in ["app", "tool", "node"] {
        let mut new = New::make("c", kind).await;
        new.set("ZIG_GLOBAL_CACHE_DIR", cache.display());
        let source = new.folder().join("src/plugin.c");
        let text = fs::read_to_string(&source).unwrap();
        let has_assertions = "#ifdef NDEBUG\n#error \"the build leaves assertions out\"\n#endif\n";
        fs::write(&source, format!("{has_assertions}{text}")).unwrap();
        new.prepared(".wattle/venv/bin/python", &python);
        new.works().await;
    }
}
