//! Pages of apps, the studio and the SDK for TypeScript: installation of packages, builds into the
//! folders of the sources, and checks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use wattle_needs::{Missing, Program};

use crate::files;
use crate::shell::{root, say};
use crate::step::run;

/// The npm workspace of all pages and of the SDK, relative to the root.
const WORKSPACE: &str = "plugins";

/// The code that pages share, below the workspace.
const SHARED: &str = "page";

/// The studio, relative to the root. It is no workspace, because npm installs no packages for a
/// workspace outside of its root.
const STUDIO: &str = "host/studio";

/// The OpenAPI document from which the types of the native API are generated, relative to the root.
const DOCUMENT: &str =
    "host/api/src/snapshots/wattle_api__openapi__tests__the_document_is_as_published.snap";

/// The SDK for TypeScript, below the workspace.
pub(crate) const SDK: &str = "sdk/typescript";

/// The contract, whose functions the tests of the SDK read, relative to the root.
const CONTRACT: &str = "wit";

/// The templates of new apps, whose unit tests run with those of the SDK, relative to the root.
const TEMPLATES: &str = "host/cli/templates/typescript";

/// The inputs and outputs that the SDKs share, which the tests of the SDK read, relative to the root.
const VECTORS: &str = "plugins/sdk/vectors.json";

/// The pages whose examples run with those of the SDK, relative to the root.
const PAGES: [&str; 2] = ["host/docs/agents.md", "host/docs/first-app.md"];

/// The lock file. Packages are reinstalled if it has changed.
const LOCK: &str = "package-lock.json";

/// The folder of a built page, below the folder of its sources.
const BUILT: &str = "dist";

/// Builds all pages and the studio if one is older than its sources. Without Node.js and npm it
/// prints a note.
pub(crate) fn build() -> Result<()> {
    if let Some(missing) = missing() {
        say(&format!(
            "note: the pages of the applications and the studio are not built: {missing}"
        ));
        return Ok(());
    }
    install()?;
    if pages().iter().any(|page| !is_fresh(page)) {
        run("build the pages", npm().args(["run", "build"]))?;
    }
    Ok(())
}

/// Checks types, lints, format and unit tests of all pages, of the studio and of the SDK, and the
/// sizes of pages and studio.
pub(crate) fn check() -> Result<()> {
    run("check the pages and the TypeScript SDK", npm().args(["run", "check"]))?;
    run("test the pages' logic and the TypeScript SDK", npm().arg("test"))?;
    run("measure the pages", npm().args(["run", "size"]))
}

/// Returns the program that is missing for the pages and the SDK.
pub(crate) fn missing() -> Option<Missing> {
    Program::Node.find().and(Program::Npm.find()).err()
}

/// Returns true if a file belongs to the pages, to their shared code, to the studio or to the SDK.
/// The path is relative to the root.
pub(crate) fn is_source(file: &Path) -> bool {
    if file.starts_with(STUDIO) {
        return true;
    }
    let Ok(inner) = file.strip_prefix(WORKSPACE) else { return false };
    let is_of_all = inner.iter().count() == 1;
    let is_of_page = inner.iter().nth(2).is_some_and(|it| it == "page");
    is_of_all || is_of_page || inner.starts_with(SHARED) || inner.starts_with(SDK)
}

/// Returns true if the pages, the studio and the SDK must be checked after a change of this file:
/// of their sources, of a document from which types are generated, of the contract, of the vectors
/// of the SDKs, of a page with examples, or of the templates of new apps. The path is relative to
/// the root.
pub(crate) fn depend_on(file: &Path) -> bool {
    let is_of_app = file.starts_with(WORKSPACE) && file.ends_with("openapi.json");
    let mut documents = [DOCUMENT, VECTORS].into_iter().chain(PAGES);
    let is_document = is_of_app || documents.any(|it| file == Path::new(it));
    let is_template = file.starts_with(TEMPLATES);
    is_source(file) || is_document || is_template || file.starts_with(CONTRACT)
}

fn npm() -> Command {
    let mut command = Command::new("npm");
    command.current_dir(root().join(WORKSPACE)).env("npm_config_loglevel", "error");
    command
}

/// Returns the folder of the installed packages.
pub(crate) fn packages() -> PathBuf {
    root().join(WORKSPACE).join("node_modules")
}

/// Installs the packages, unless those of the lock file are installed, and links them into the
/// studio.
pub(crate) fn install() -> Result<()> {
    let (lock, mark) = (root().join(WORKSPACE).join(LOCK), packages().join(".installed.json"));
    link_packages()?;
    if files::same(&lock, &mark) {
        return Ok(());
    }
    let mut install = npm();
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    run("install the packages of the pages and the TypeScript SDK", &mut install)?;
    files::copy(&lock, &mark)
}

/// Links the installed packages into the studio, where its imports are resolved. The link is
/// relative, so that it remains valid in a clone that was moved.
fn link_packages() -> Result<()> {
    let link = root().join(STUDIO).join("node_modules");
    if fs::symlink_metadata(&link).is_ok() {
        return Ok(());
    }
    let packages = Path::new("../..").join(WORKSPACE).join("node_modules");
    symlink(packages, &link).with_context(|| format!("cannot create {}", link.display()))
}

/// Returns the folders of the pages, and that of the studio.
fn pages() -> Vec<PathBuf> {
    let apps = fs::read_dir(root().join(WORKSPACE).join("apps")).into_iter().flatten();
    let pages = apps.filter_map(|app| app.ok().map(|app| app.path().join("page")));
    let pages = pages.chain([root().join(STUDIO)]);
    pages.filter(|page| page.join("package.json").is_file()).collect()
}

/// Returns true if a page is newer than its sources.
fn is_fresh(page: &Path) -> bool {
    let workspace = root().join(WORKSPACE);
    let built = fs::metadata(page.join(BUILT).join("index.html"));
    let Ok(built) = built.and_then(|facts| facts.modified()) else { return false };
    let sources = [page.to_owned(), workspace.join(SHARED), workspace.join(LOCK)];
    sources.iter().filter_map(|path| newest(path)).all(|changed| changed < built)
}

/// Returns the time of the latest change below a path, without built and installed files.
fn newest(path: &Path) -> Option<SystemTime> {
    if path.is_file() {
        return fs::metadata(path).and_then(|facts| facts.modified()).ok();
    }
    let entries = fs::read_dir(path).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let is_source = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with(BUILT) && name != "node_modules"
    };
    entries.filter(is_source).filter_map(|path| newest(&path)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_the_pages_and_of_the_sdk_are_no_sources_of_crates() {
        for file in [
            "plugins/package.json",
            "plugins/page/src/index.ts",
            "plugins/apps/asset/page/index.html",
            "plugins/sdk/typescript/src/index.ts",
            "host/studio/src/main.tsx",
        ] {
            assert!(is_source(Path::new(file)), "{file}");
        }
        for file in
            ["plugins/sdk/src/lib.rs", "plugins/apps/asset/src/lib.rs", "wit/wattle/llm.wit"]
        {
            assert!(!is_source(Path::new(file)), "{file}");
        }
    }

    #[test]
    fn documents_templates_and_the_contract_are_checked_with_the_pages() {
        for file in [
            "plugins/apps/asset/openapi.json",
            "wit/wattle/llm.wit",
            "host/cli/templates/typescript/app/test/index.test.ts",
            DOCUMENT,
            VECTORS,
            PAGES[0],
            PAGES[1],
        ] {
            assert!(depend_on(Path::new(file)), "{file}");
        }
        assert!(!depend_on(Path::new("host/api/src/lib.rs")));
    }
}
