//! Tests of what each application ships for its operators, without a server: the commands that
//! start it, in its README and in `wattle.example.toml`.

use std::collections::BTreeSet;
use std::fs;

use wattle_kit::configuration::Configuration;
use wattle_suite::guests::root;

/// The applications with a configuration.
const APPS: [&str; 5] = ["asset", "expense", "nl2sql", "reasoning", "travel"];

/// Files of an application that begin with the commands that start it.
const FILES: [&str; 2] = ["README.md", "wattle.example.toml"];

/// Builds the components, the pages and the host.
const BUILD: &str = "cargo xtask guests && cargo xtask pages && cargo build --release --bin wattle";

/// Starts the host, which is not on the path.
const START: &str = "./target/release/wattle serve";

#[test]
fn each_application_names_the_commands_that_start_it() {
    for app in APPS {
        let copy = format!("cp plugins/apps/{app}/wattle.example.toml wattle.toml");
        for file in FILES {
            let path = format!("plugins/apps/{app}/{file}");
            let text = fs::read_to_string(root().join(&path)).unwrap();
            let mut rest = text.as_str();
            for command in [BUILD, &copy, "export ", START] {
                let found = rest.split_once(command);
                rest = found.unwrap_or_else(|| panic!("{path} has no `{command}` in its place")).1;
            }
        }
    }
}

#[test]
fn each_application_names_the_variables_that_it_needs() {
    for app in APPS {
        let needed = Configuration::shipped(&root(), app).unwrap().variables();
        for file in FILES {
            let path = format!("plugins/apps/{app}/{file}");
            let text = fs::read_to_string(root().join(&path)).unwrap();
            let line = text.split_once("export ").and_then(|(_, rest)| rest.lines().next());
            let words = line.into_iter().flat_map(str::split_whitespace);
            let exported: BTreeSet<String> =
                words.filter_map(|word| word.strip_suffix("=...")).map(str::to_owned).collect();
            assert_eq!(exported, needed, "{path}");
        }
    }
}
