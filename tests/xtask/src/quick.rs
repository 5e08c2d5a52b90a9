//! `cargo xtask quick [crate...]`: format, lint and tests of the crates that changed, and of their
//! dependents, without slow tests.
//!
//! The profile `quick` of `.config/nextest.toml` excludes the slow tests, which only `cargo xtask
//! test` runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use wattle_needs::Program;

use crate::commands;
use crate::native::nextest;
use crate::shell::{cargo, root, say};
use crate::step::run;
use crate::{c_sdk, guests, needs, pages, python_sdk};

/// The integration tests. They load guests from files, so the crates of guests are not among their
/// dependencies.
const SUITE: &str = "wattle-suite";

/// A crate of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    name: String,
    /// The folder of the crate, relative to the root.
    folder: PathBuf,
    /// Crates of the workspace that it depends on, including development dependencies.
    needs: Vec<String>,
}

/// Checks the named crates. Without names it checks those with uncommitted changes, or else those
/// that the newest commit changed.
///
/// # Errors
///
/// If a crate is unknown, or a step fails.
pub(crate) fn quick(names: &[&str]) -> Result<()> {
    let packages = packages()?;
    let files = if names.is_empty() { changed_files()? } else { Vec::new() };
    let changed = match names {
        [] => packages_of(&files, &packages),
        names => names.iter().map(|name| named(name, &packages)).collect::<Result<_>>()?,
    };
    let is_for_pages = |file: &PathBuf| pages::depend_on(file);
    if files.iter().any(is_for_pages) && pages::missing().is_none() {
        pages::build()?;
        pages::check()?;
    }
    if files.iter().any(|file| python_sdk::depends_on(file)) && Program::Python.find().is_ok() {
        python_sdk::install()?;
        python_sdk::check()?;
    }
    if files.iter().any(|file| c_sdk::depends_on(file)) {
        c_sdk::check()?;
    }
    if changed.is_empty() {
        say("no crate has changed");
        return Ok(());
    }
    say(&format!("changed: {}", changed.iter().cloned().collect::<Vec<_>>().join(", ")));
    let affected = dependents(&changed, &packages);
    needs::nextest()?;
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    // Clippy checks the whole workspace, and cargo skips crates that are up to date.
    commands::lint()?;
    if affected.iter().any(|name| guests::is_guest(name)) {
        guests::build_some(|name| affected.contains(name))?;
    }
    let mut tests = nextest("quick");
    tests.args(["--filterset", &filter(&affected)]);
    run("run the quick tests", &mut tests)
}

/// Returns the filter expression of nextest for the tests of these crates. The suite starts guests,
/// so it has tests for them, too. Tests of an application are in a module of its name, and run only
/// if the application has changed; the other modules test what the host does for applications.
fn filter(affected: &BTreeSet<String>) -> String {
    let of_suite = |test: &str| format!("(package(={SUITE}) and {test})");
    let mut tests = Vec::new();
    let mut has_others = false;
    for name in affected {
        if name != SUITE && name != guests::FOREIGN {
            tests.push(format!("package(={name})"));
        }
        match guests::application(name) {
            Some(app) => tests.push(of_suite(&format!("test(/^{app}::/)"))),
            None => has_others |= name == SUITE || guests::is_guest(name),
        }
    }
    if has_others {
        let apps = guests::applications().collect::<Vec<_>>().join("|");
        tests.push(of_suite(&format!("not test(/^({apps})::/)")));
    }
    tests.join(" or ")
}

/// Returns the crates of the workspace, from `cargo metadata`.
fn packages() -> Result<Vec<Package>> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    packages_in(&metadata, &root()).context("`cargo metadata` has an unknown format")
}

fn packages_in(metadata: &Value, root: &Path) -> Option<Vec<Package>> {
    let package = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let needs = package["dependencies"].as_array()?.iter();
        let needs = needs.filter(|needed| needed["path"].is_string());
        Some(Package {
            name: package["name"].as_str()?.to_owned(),
            folder: manifest.parent()?.strip_prefix(root).ok()?.to_owned(),
            needs: needs.filter_map(|needed| Some(needed["name"].as_str()?.to_owned())).collect(),
        })
    };
    metadata["packages"].as_array()?.iter().map(package).collect()
}

/// Finds a crate by its name, its name without `wattle-`, or its folder.
fn named(name: &str, packages: &[Package]) -> Result<String> {
    let full = format!("wattle-{name}");
    let folder = Path::new(name);
    let found = packages
        .iter()
        .find(|package| package.name == name || package.name == full || package.folder == folder);
    let known = || packages.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = found.with_context(|| format!("unknown crate `{name}`; crates: {}", known()));
    found.map(|package| package.name.clone())
}

/// Returns the files with uncommitted changes, or else those of the newest commit.
fn changed_files() -> Result<Vec<PathBuf>> {
    let mut files = git(&["diff", "--name-only", "HEAD"])?;
    files.extend(git(&["ls-files", "--others", "--exclude-standard"])?);
    if files.is_empty() {
        files = git(&["show", "--name-only", "--format=", "HEAD"])?;
    }
    Ok(files)
}

fn git(arguments: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.current_dir(root()).args(["-c", "core.quotePath=false"]).args(arguments);
    let output = command.output().context("cannot start git")?;
    if !output.status.success() {
        bail!("`git {}`: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect())
}

/// Returns the crates that contain these files. A crate may be inside of another one.
fn packages_of(files: &[PathBuf], packages: &[Package]) -> BTreeSet<String> {
    let owner = |file: &PathBuf| {
        let around = packages.iter().filter(|package| file.starts_with(&package.folder));
        around.max_by_key(|package| package.folder.components().count())
    };
    let is_of_crate = |file: &&PathBuf| {
        !pages::is_source(file) && !python_sdk::is_source(file) && !c_sdk::is_source(file)
    };
    let sources = files.iter().filter(is_of_crate);
    sources.filter_map(owner).map(|package| package.name.clone()).collect()
}

/// Returns these crates and all that depend on them.
fn dependents(changed: &BTreeSet<String>, packages: &[Package]) -> BTreeSet<String> {
    let mut affected = changed.clone();
    loop {
        let more = packages.iter().filter(|package| {
            !affected.contains(&package.name)
                && package.needs.iter().any(|it| affected.contains(it))
        });
        let more: Vec<String> = more.map(|package| package.name.clone()).collect();
        if more.is_empty() {
            return affected;
        }
        affected.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn three() -> Vec<Package> {
        let package = |name: &str, folder: &str, needs: &[&str]| {
            let path = |name: &&str| json!({ "name": name, "path": "/r/x" });
            let mut needs: Vec<Value> = needs.iter().map(path).collect();
            needs.push(json!({ "name": "serde" }));
            json!({ "name": name, "manifest_path": format!("/r/{folder}/Cargo.toml"),
                "dependencies": needs })
        };
        let metadata = json!({ "packages": [
            package("wattle-graph", "host/graph", &[]),
            package("wattle-run", "host/run", &["wattle-graph"]),
            package("wattle-macros", "host/graph/macros", &[]),
        ] });
        packages_in(&metadata, Path::new("/r")).unwrap()
    }

    #[test]
    fn crates_are_found_by_their_files() {
        let changed = |file: &str| packages_of(&[PathBuf::from(file)], &three());
        assert_eq!(changed("host/graph/src/lib.rs"), ["wattle-graph".to_owned()].into());
        assert_eq!(changed("host/graph/macros/src/lib.rs"), ["wattle-macros".to_owned()].into());
        assert_eq!(changed("README.md"), BTreeSet::new());
    }

    #[test]
    fn files_of_other_sdks_belong_to_no_crate() {
        let folder = PathBuf::from("plugins/sdk");
        let sdk = [Package { name: "wattle-plugin".to_owned(), folder, needs: Vec::new() }];
        let changed = |file: &str| packages_of(&[PathBuf::from(file)], &sdk);
        assert_eq!(changed("plugins/sdk/src/lib.rs"), ["wattle-plugin".to_owned()].into());
        assert_eq!(changed("plugins/sdk/python/src/wattle/llm.py"), BTreeSet::new());
        assert_eq!(changed("plugins/sdk/c/wattle.c"), BTreeSet::new());
    }

    #[test]
    fn crates_are_found_by_their_names() {
        for name in ["wattle-run", "run", "host/run"] {
            assert_eq!(named(name, &three()).unwrap(), "wattle-run");
        }
        let error = named("walk", &three()).unwrap_err().to_string();
        assert!(error.starts_with("unknown crate `walk`; crates: wattle-graph,"), "{error}");
    }

    #[test]
    fn dependents_of_a_changed_crate_are_affected() {
        let affected = |name: &str| dependents(&[name.to_owned()].into(), &three());
        assert_eq!(affected("wattle-graph").len(), 2);
        assert_eq!(affected("wattle-run"), ["wattle-run".to_owned()].into());
    }

    #[test]
    fn tests_of_a_guest_include_those_of_the_suite() {
        let filter = |name: &str| filter(&[name.to_owned()].into());
        assert_eq!(filter("wattle-run"), "package(=wattle-run)");
        let travel = "(package(=wattle-suite) and test(/^travel::/))";
        assert_eq!(filter("wattle-app-travel"), format!("package(=wattle-app-travel) or {travel}"));
        let apps = "asset|nl2sql|reasoning|expense|travel|notes";
        let suite = format!("(package(=wattle-suite) and not test(/^({apps})::/))");
        assert_eq!(filter("wattle-suite"), suite);
        assert_eq!(filter("wattle-std"), format!("package(=wattle-std) or {suite}"));
    }
}
