//! Embeds the templates of `wattle new`, the SDKs with which plugins are built, and, in a release
//! build, the studio. The SDKs are not published in a registry, so an app is built with the SDKs in
//! the binary.

#[path = "build/studio.rs"]
mod studio;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// Files and folders that are embedded without changes: the path of each in the binary, and in the
/// repository. The first part of a path of an SDK is the name of its language.
const COPIED: &[(&str, &str)] = &[
    ("templates", "host/cli/templates"),
    ("sdk/rust/plugins/sdk/Cargo.toml", "plugins/sdk/Cargo.toml"),
    ("sdk/rust/plugins/sdk/README.md", "plugins/sdk/README.md"),
    ("sdk/rust/plugins/sdk/src", "plugins/sdk/src"),
    ("sdk/rust/plugins/sdk/macros", "plugins/sdk/macros"),
    ("sdk/rust/wit/wattle", "wit/wattle"),
    ("sdk/rust/LICENSE", "LICENSE"),
    ("sdk/typescript/README.md", "plugins/sdk/typescript/README.md"),
    ("sdk/typescript/bin", "plugins/sdk/typescript/bin"),
    ("sdk/typescript/build", "plugins/sdk/typescript/build"),
    ("sdk/typescript/src", "plugins/sdk/typescript/src"),
    ("sdk/typescript/wit", "wit/wattle"),
    ("sdk/typescript/LICENSE", "LICENSE"),
    ("sdk/python/README.md", "plugins/sdk/python/README.md"),
    ("sdk/python/pyproject.toml", "plugins/sdk/python/pyproject.toml"),
    ("sdk/python/src", "plugins/sdk/python/src"),
    ("sdk/python/LICENSE", "LICENSE"),
    ("sdk/c/README.md", "plugins/sdk/c/README.md"),
    ("sdk/c/wattle.h", "plugins/sdk/c/wattle.h"),
    ("sdk/c/wattle.c", "plugins/sdk/c/wattle.c"),
    ("sdk/c/web.c", "plugins/sdk/c/web.c"),
    ("sdk/c/json.c", "plugins/sdk/c/json.c"),
    ("sdk/c/internal.h", "plugins/sdk/c/internal.h"),
    // `cargo xtask bindings` generates them.
    ("sdk/c/bindings", "plugins/sdk/c/bindings"),
    ("sdk/c/LICENSE", "LICENSE"),
];

/// The folder of the studio.
const STUDIO: &str = "host/studio";

/// The crates of the Rust SDK, which inherit keys of the workspace.
const CRATES: [&str; 2] = ["plugins/sdk", "plugins/sdk/macros"];

/// The manifest of the TypeScript SDK.
const PACKAGE: &str = "plugins/sdk/typescript/package.json";

/// Keys of [`PACKAGE`] that only developers of the SDK need.
const OF_DEVELOPERS: [&str; 3] = ["devDependencies", "private", "scripts"];

/// The folder of compiled modules of Python.
const COMPILED: &str = "__pycache__";

#[expect(clippy::disallowed_methods, reason = "cargo names the folder in the environment")]
fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("cargo sets `OUT_DIR`"))?;
    let out = PathBuf::from(out);
    let mut files = BTreeMap::new();
    for (path, source) in COPIED {
        let source = root.join(source);
        println!("cargo::rerun-if-changed={}", source.display());
        add(path, &source, &mut files)?;
    }
    let made = [
        ("sdk/rust/Cargo.toml", "workspace.toml", workspace(&root)?),
        ("sdk/typescript/package.json", "package.json", package(&root)?),
    ];
    for (path, name, text) in made {
        let file = out.join(name);
        fs::write(&file, text)?;
        files.insert(path.to_owned(), file);
    }
    let mut table = String::from("static FILES: &[(&str, &[u8])] = &[\n");
    for (path, file) in files {
        let file = file.canonicalize()?.to_string_lossy().into_owned();
        writeln!(table, "    ({path:?}, include_bytes!({file:?})),").map_err(Error::other)?;
    }
    table.push_str("];\n");
    fs::write(out.join("embedded.rs"), table)?;
    let is_release = std::env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    fs::write(out.join("studio.rs"), studio_table(&root.join(STUDIO), is_release)?)
}

/// Returns the code of the table of the studio's files. Cargo runs the script again when the files
/// change, or when they are built for the first time.
fn studio_table(folder: &Path, is_release: bool) -> Result<String> {
    if is_release {
        let built = folder.join(studio::BUILT);
        let watched = if built.is_dir() { built.as_path() } else { folder };
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    studio::code(folder, is_release)
}

/// Adds a file, or all files of a folder. Symbolic links are followed, because the contract in the
/// Python SDK is a symbolic link.
fn add(path: &str, source: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let failed = |error| Error::other(format!("cannot embed {}: {error}", source.display()));
    if fs::metadata(source).map_err(failed)?.is_file() {
        files.insert(path.to_owned(), source.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(source).map_err(failed)? {
        let name = entry?.file_name();
        let name = name.to_str().ok_or_else(|| failed(Error::other("a name is no UTF-8")))?;
        if name != COMPILED {
            add(&format!("{path}/{name}"), &source.join(name), files)?;
        }
    }
    Ok(())
}

/// Returns the manifest of a workspace that has only the crates of the Rust SDK, with the keys that
/// they inherit.
fn workspace(root: &Path) -> Result<String> {
    let mut manifest = read_toml(&root.join("Cargo.toml"))?;
    let mut used = BTreeSet::new();
    for folder in CRATES {
        inherited(&Value::Table(read_toml(&root.join(folder).join("Cargo.toml"))?), &mut used);
    }
    let mut workspace = Table::new();
    if let Some(Value::Table(all)) = manifest.remove("workspace") {
        for (key, value) in all {
            let value = match value {
                Value::Table(all) if key == "dependencies" => {
                    let used = all.into_iter().filter(|(name, _)| used.contains(name));
                    Value::Table(used.collect())
                }
                value => value,
            };
            workspace.insert(key, value);
        }
        workspace.remove("default-members");
    }
    let members = CRATES.iter().map(|folder| Value::from(*folder)).collect();
    workspace.insert("members".to_owned(), Value::Array(members));
    let manifest = Table::from_iter([("workspace".to_owned(), Value::Table(workspace))]);
    toml::to_string(&manifest).map_err(Error::other)
}

/// Collects the names of the tables that contain `workspace = true`.
fn inherited(value: &Value, names: &mut BTreeSet<String>) {
    for (name, value) in value.as_table().into_iter().flatten() {
        if value.get("workspace").and_then(Value::as_bool) == Some(true) {
            names.insert(name.clone());
        }
        inherited(value, names);
    }
}

/// Returns the manifest of the TypeScript SDK without the keys that only developers of the SDK
/// need.
fn package(root: &Path) -> Result<String> {
    let file = root.join(PACKAGE);
    println!("cargo::rerun-if-changed={}", file.display());
    let mut manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    if let Some(keys) = manifest.as_object_mut() {
        keys.retain(|key, _| !OF_DEVELOPERS.contains(&key.as_str()));
    }
    Ok(serde_json::to_string_pretty(&manifest)? + "\n")
}

fn read_toml(file: &Path) -> Result<Table> {
    println!("cargo::rerun-if-changed={}", file.display());
    fs::read_to_string(file)?.parse().map_err(Error::other)
}
