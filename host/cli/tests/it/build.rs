//! `wattle build`: commands of an app make its component.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Runs the binary in a folder.
fn wattle(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    let path = "/usr/local/bin:/usr/bin:/bin";
    command.args(args).current_dir(folder).env_clear().env("PATH", path).output().unwrap()
}

/// Runs `wattle build` in a folder, and returns its exit code and what it says.
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
fn a_component_is_replaced_by_one_that_can_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/tools/date/date.wasm");
    let shipped = shipped.canonicalize().unwrap();
    let component = folder.join("bin/date.wasm");
    fs::create_dir(folder.join(".wattle")).unwrap();

    write(folder, "echo $WORD >&2; echo error in line 3; exit 1");
    let (code, said) = build(folder);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("compiling\nerror in line 3\nerror: `sh -c "), "{said}");

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
    assert_eq!(built.status.code(), Some(0), "{}", String::from_utf8_lossy(&built.stderr));
    let report: Value = serde_json::from_slice(&built.stdout).unwrap();
    let [made] = report["components"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&made["name"], &made["changed"]), (&json!("date"), &json!(true)));
    assert!(!made["tools"].as_array().unwrap().is_empty(), "{made}");
    assert_eq!(fs::read(&component).unwrap(), fs::read(&shipped).unwrap());

    // An equal component is not written again, and a broken one does not replace it.
    let written = fs::metadata(&component).unwrap().modified().unwrap();
    assert_eq!(build(folder).0, Some(0));
    write(folder, "echo no component > .wattle/out/made.wasm");
    assert_eq!(build(folder).0, Some(1));
    assert_eq!(fs::metadata(&component).unwrap().modified().unwrap(), written);
}

#[test]
fn an_app_that_says_not_how_to_build_it_is_refused() {
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
