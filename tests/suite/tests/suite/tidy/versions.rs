//! Tests that the page about the Agent Server names the versions of the clients with which tests
//! run, and of the server with which it compares.
//!
//! The folders of the clients pin the versions, in `requirements.txt` or `package.json`. A new
//! version or folder changes the page as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use wattle_suite::guests::root;

/// The page with the table.
const PAGE: &str = "host/docs/agent-server.md";

/// The first line of the table.
const HEAD: &str = "| client | newest | older |\n";

/// The ending of a folder with an older version.
const OLDER: &str = "-older";

/// The package of each client, the folders with its newest version, and those with older ones.
const CLIENTS: &[(&str, &[&str], &[&str])] = &[
    ("langgraph-sdk", &["langgraph-py"], &["langgraph-py-older"]),
    ("langgraph", &["langgraph-py"], &["langgraph-py-older"]),
    (
        "@langchain/langgraph-sdk",
        &["langgraph-js", "react"],
        &["langgraph-js-older", "react-older"],
    ),
    ("@langchain/react", &["react"], &["react-older"]),
    ("@ag-ui/client", &["ag-ui"], &["ag-ui-older"]),
    ("ai", &["ai-sdk/7"], &["ai-sdk/6", "ai-sdk/5"]),
];

/// The package of the server with which the page compares, and the folder that pins it.
const REFERENCE: (&str, &str) = ("langgraph-api", "tests/bench/peer/server");

/// The newest version of a client, and its older versions, newest first.
type Versions = (String, Vec<String>);

#[test]
fn the_page_names_the_versions_of_each_client() {
    let mut pinned = BTreeMap::new();
    for (package, newest, older) in CLIENTS {
        let mut newest_pins = pins(package, newest);
        assert_eq!(newest_pins.len(), 1, "{newest:?} pin different versions of {package}");
        let versions: Versions = (newest_pins.remove(0), pins(package, older));
        pinned.insert((*package).to_owned(), versions);
    }
    assert_eq!(rows(&page()), pinned, "the table of {PAGE} is on the left");
}

#[test]
fn every_folder_with_an_older_client_is_compared() {
    let compared: BTreeSet<&str> =
        CLIENTS.iter().flat_map(|(_, _, older)| older.iter().copied()).collect();
    for entry in fs::read_dir(root().join("tests/clients")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(OLDER) || compared.contains(&*name), "add {name} to `CLIENTS`");
    }
}

#[test]
fn the_page_names_the_version_of_the_reference_server() {
    let (package, folder) = REFERENCE;
    let version = pin(&root().join(folder), package).unwrap();
    let named = format!("`{package}` {version}");
    assert!(page().contains(&named), "{PAGE} does not name {named}");
}

#[test]
fn versions_of_a_table_and_of_pins_are_read() {
    let page = format!(
        "| `no` | 1 | 0 |\n\n{HEAD}|---|---|---|\n| `a-b` (`C` of it) | 2.0 | 1.9 |\n\
         | `@d/e` | 3.1.0 | 2.5, 1.0.7 |\n\n| `no` | 1 | 0 |\n"
    );
    let row = |name: &str, newest: &str, older: &[&str]| -> (String, Versions) {
        let older = older.iter().map(|&version| version.to_owned()).collect();
        (name.to_owned(), (newest.to_owned(), older))
    };
    let expected = [row("a-b", "2.0", &["1.9"]), row("@d/e", "3.1.0", &["2.5", "1.0.7"])];
    assert_eq!(rows(&page), BTreeMap::from(expected));
    assert_eq!(requirement("a-b==2.0\na==1.0\n", "a").as_deref(), Some("1.0"));
    assert_eq!(requirement("a-b==2.0\n", "a"), None);
}

fn page() -> String {
    fs::read_to_string(root().join(PAGE)).unwrap()
}

/// Returns the versions in the table of a page, by the first name between backticks of each row.
fn rows(page: &str) -> BTreeMap<String, Versions> {
    let (_, table) = page.split_once(HEAD).expect("the table of versions");
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, client, newest, older, _] = cells[..] else { panic!("{row} has not three cells") };
        let package = client.split('`').nth(1).expect("the name of a package").to_owned();
        let older = older.split(", ").map(str::to_owned).collect();
        (package, (newest.to_owned(), older))
    })
    .collect()
}

/// Returns the versions of a package that the folders of clients pin, each version once.
fn pins(package: &str, folders: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for name in folders {
        let version = pin(&root().join("tests/clients").join(name), package);
        let version = version.unwrap_or_else(|| panic!("{name} does not pin {package}"));
        if !found.contains(&version) {
            found.push(version);
        }
    }
    found
}

/// Returns the version of a package that a folder pins.
fn pin(folder: &Path, package: &str) -> Option<String> {
    if let Ok(text) = fs::read_to_string(folder.join("requirements.txt")) {
        return requirement(&text, package);
    }
    let manifest = fs::read_to_string(folder.join("package.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    Some(manifest["dependencies"][package].as_str()?.to_owned())
}

/// Returns the version of a package in the text of a `requirements.txt`.
fn requirement(text: &str, package: &str) -> Option<String> {
    let mut pins = text.lines().filter_map(|line| line.split_once("=="));
    pins.find(|(name, _)| *name == package).map(|(_, version)| version.to_owned())
}
