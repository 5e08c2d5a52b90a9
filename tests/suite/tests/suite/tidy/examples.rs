//! Tests of what each application ships for its operators, without a server: the commands that
//! start it, in its README and in `wattle.example.toml`, the files that the README names, and the
//! models of that configuration.

use std::collections::BTreeSet;
use std::fs;

use wattle::config::{self, Config};
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

/// The route to models for images, of which no tokens are recorded.
const IMAGES: &str = "handbook_image";

/// The page whose table lists retired models, and the heading of the table.
const RETIRED: (&str, &str) = ("plugins/apps/travel/README.md", "### Retired models");

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

#[test]
fn each_application_names_files_that_exist() {
    for app in APPS {
        let folder = root().join("plugins/apps").join(app);
        let text = fs::read_to_string(folder.join("README.md")).unwrap();
        // Text in code is every second piece.
        let code = text.split('`').skip(1).step_by(2);
        let named: Vec<&str> =
            code.filter(|name| name.starts_with("src/") || name.starts_with("prompts/")).collect();
        assert!(!named.is_empty(), "{app}");
        let missing: Vec<&&str> = named.iter().filter(|name| !folder.join(name).exists()).collect();
        assert!(missing.is_empty(), "plugins/apps/{app}/README.md names {missing:?}");
    }
}

#[test]
fn no_route_calls_the_same_model_twice() {
    for app in APPS {
        let model = shipped(app).model;
        for (name, route) in &model.routes {
            let targets = route.models();
            let mut called = Vec::new();
            for target in &targets {
                let alias = model.aliases.get(&target.model);
                let name_called = alias.map_or(&target.model, |alias| &alias.model);
                let call = (&target.provider, name_called, alias.map(|alias| &alias.extra));
                assert!(!called.contains(&call), "{app}: `{name}` calls {call:?} twice");
                called.push(call);
            }
        }
    }
}

#[test]
fn each_model_that_a_route_calls_has_a_price() {
    for app in APPS {
        let model = shipped(app).model;
        for (name, route) in model.routes.iter().filter(|(name, _)| *name != IMAGES) {
            for target in route.models() {
                let alias = model.aliases.get(&target.model);
                let called = alias.map_or(&target.model, |alias| &alias.model);
                let price = model.prices.get(called);
                assert!(price.is_some(), "{app}: `{called}` of `{name}` has no price");
            }
        }
    }
}

#[test]
fn aliases_replace_all_retired_models_by_models_in_service() {
    let aliases = shipped("travel").model.aliases;
    let retired = retired();
    assert!(!retired.is_empty(), "{RETIRED:?} lists no model");
    for name in &retired {
        let alias = aliases.get(name);
        let alias = alias.unwrap_or_else(|| panic!("`{name}` is retired and has no alias"));
        assert!(!retired.contains(&alias.model), "`{}` is retired as well", alias.model);
    }
}

/// Reads the configuration that an application ships.
fn shipped(app: &str) -> Config {
    let path = root().join(format!("plugins/apps/{app}/wattle.example.toml"));
    config::parse(&fs::read_to_string(path).unwrap(), &root()).unwrap()
}

/// Returns the models in the first column of the table of retired models.
fn retired() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(RETIRED.0)).unwrap();
    let (_, section) = text.split_once(RETIRED.1).unwrap();
    let section = section.split("\n#").next().unwrap_or_default();
    let cells = section.lines().filter_map(|row| row.strip_prefix("| `")?.split('|').next());
    let names = cells.flat_map(|cell| cell.split('`').step_by(2));
    names.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}
