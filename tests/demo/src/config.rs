//! The demo's `wattle.toml`: the configurations that the applications ship, in one file, with the
//! addresses of the stand-ins in place of those of the services.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

/// The applications, whose `wattle.example.toml` is read. Where two of them define the same route,
/// the first one's stands.
const APPS: [&str; 5] = ["asset", "expense", "nl2sql", "reasoning", "travel"];

/// The value of every key and secret; the stand-ins take any.
const KEY: &str = "demo-key";

/// A variable that names an account and is no secret.
const FEISHU_APP: (&str, &str) = ("FEISHU_APP_ID", "cli_demo");

/// A configuration, and the variables that it names.
pub(crate) struct Demo {
    /// The text of `wattle.toml`.
    pub(crate) text: String,
    /// Names and values.
    pub(crate) variables: Vec<(String, String)>,
}

/// Where the stand-ins listen.
struct Standins<'a> {
    base: &'a str,
    port: i64,
}

impl Demo {
    /// Reads the configurations of all applications below `root`.
    pub(crate) fn read(root: &Path, standins: &str) -> Result<Self> {
        let port = standins.rsplit(':').next().and_then(|port| port.parse().ok());
        let standins = Standins { base: standins, port: port.context("no port")? };
        let mut all = own_tables(root)?;
        for app in APPS {
            let file = root.join("plugins/apps").join(app).join("wattle.example.toml");
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let mut table: Table =
                text.parse().with_context(|| format!("cannot parse {}", file.display()))?;
            standins.replace(&mut table, root)?;
            merge(&mut all, table);
        }
        let variables = variables(&all);
        let text = format!("# Written by the demo.\n{}", toml::to_string(&all)?);
        Ok(Self { text, variables })
    }
}

/// What the demo says itself: free ports, a folder of its own, the front page at `/`, and no pause
/// between requests to the stand-in of a geocoder.
fn own_tables(root: &Path) -> Result<Table> {
    let text = format!(
        "data = \"data\"\nplugins = {:?}\n[server]\nlisten = \"127.0.0.1:0\"\n\
         [clock]\ntime_zone = \"Asia/Shanghai\"\n[apps.welcome]\nmount = \"/\"\n\
         [apps.travel.settings]\npublic_path = \"/apps/travel\"\nnominatim_interval_ms = 20\n",
        root.join("plugins").display().to_string(),
    );
    text.parse().context("the demo's own tables")
}

/// Adds what is not there yet.
fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(known)), Value::Table(more)) => merge(known, more),
            (Some(_), _) => {}
            (None, value) => drop(into.insert(key, value)),
        }
    }
}

impl Standins<'_> {
    fn replace(&self, config: &mut Table, root: &Path) -> Result<()> {
        // Nobody reads the demo's spans.
        config.remove("telemetry");
        for provider in tables(config, &["model", "providers"]) {
            let path = match provider.get("kind").and_then(Value::as_str) {
                Some("openai") => "v1/",
                Some("gemini") => "v1beta/",
                other => bail!("the demo has no stand-in for a provider of the kind {other:?}"),
            };
            provider.insert("base_url".into(), format!("{}/{path}", self.base).into());
        }
        for app in tables(config, &["apps"]) {
            app.retain(|key, _| !matches!(key, "mount" | "listen"));
            let path = app.get("path").and_then(Value::as_str).context("an app without a path")?;
            let path = root.join(path).display().to_string();
            app.insert("path".into(), path.into());
        }
        for (name, server) in named_tables(config, &["mcp"]) {
            server.insert("url".into(), format!("{}/mcp/{name}", self.base).into());
            server.insert("private".into(), true.into());
        }
        for grant in tables(config, &["grants"]) {
            let rules = grant.get_mut("http").and_then(Value::as_array_mut);
            for rule in rules.into_iter().flatten().filter_map(Value::as_table_mut) {
                rule.insert("host".into(), "127.0.0.1".into());
                rule.insert("scheme".into(), "http".into());
                rule.insert("port".into(), self.port.into());
                rule.insert("private".into(), true.into());
            }
        }
        config.iter_mut().for_each(|(_, value)| self.replace_addresses(value));
        Ok(())
    }

    /// Replaces scheme and host of what is left of the services' addresses.
    fn replace_addresses(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(rest) = text.strip_prefix("https://") {
                    let path = rest.find('/').map_or("", |at| &rest[at..]);
                    *text = format!("{}{path}", self.base);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_addresses(item)),
            Value::Table(table) => {
                table.iter_mut().for_each(|(_, value)| self.replace_addresses(value));
            }
            _ => {}
        }
    }
}

/// The tables at a path, with their names.
fn named_tables<'t>(
    config: &'t mut Table,
    path: &[&str],
) -> impl Iterator<Item = (&'t String, &'t mut Table)> {
    let mut at = Some(config);
    for name in path {
        at = at.and_then(|table| table.get_mut(*name)).and_then(Value::as_table_mut);
    }
    let all = at.into_iter().flat_map(|table| table.iter_mut());
    all.filter_map(|(name, value)| Some((name, value.as_table_mut()?)))
}

fn tables<'t>(config: &'t mut Table, path: &[&str]) -> impl Iterator<Item = &'t mut Table> {
    named_tables(config, path).map(|(_, table)| table)
}

/// Every variable that a key or secret is read from.
fn variables(config: &Table) -> Vec<(String, String)> {
    let mut names = Vec::new();
    collect(config, &mut names);
    names.sort();
    names.dedup();
    let value = |name: &str| if name == FEISHU_APP.0 { FEISHU_APP.1 } else { KEY };
    names.into_iter().map(|name| (name.clone(), value(&name).to_owned())).collect()
}

fn collect(table: &Table, names: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            Value::String(name) if matches!(key.as_str(), "key_env" | "env") => {
                names.push(name.clone());
            }
            Value::Table(inner) => collect(inner, names),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_become_stand_ins_and_the_first_of_two_tables_stands() {
        let mut config: Table = r#"
            [model.providers.one]
            kind = "gemini"
            base_url = "https://models.example/v1beta/"
            key_env = "ONE_KEY"
            [mcp.graph]
            url = "https://graph.example/mcp"
            [apps.a]
            path = "plugins/apps/a"
            mount = "/"
            settings = { base = "https://data.example/x/y", plain = "text" }
            [grants.a]
            http = [{ host = "data.example", methods = ["GET"] }]
        "#
        .parse()
        .unwrap();
        let standins = Standins { base: "http://127.0.0.1:9", port: 9 };
        standins.replace(&mut config, Path::new("/root")).unwrap();
        let text = toml::to_string(&config).unwrap();
        assert!(!text.contains("https://") && !text.contains("mount"), "{text}");
        assert_eq!(
            config["apps"]["a"]["settings"]["base"].as_str(),
            Some("http://127.0.0.1:9/x/y")
        );
        assert_eq!(config["mcp"]["graph"]["url"].as_str(), Some("http://127.0.0.1:9/mcp/graph"));
        assert_eq!(config["grants"]["a"]["http"][0]["port"].as_integer(), Some(9));
        assert_eq!(variables(&config), [("ONE_KEY".to_owned(), KEY.to_owned())]);
        let mut all: Table = "[apps.a]\npath = \"mine\"".parse().unwrap();
        merge(&mut all, config);
        assert_eq!(all["apps"]["a"]["path"].as_str(), Some("mine"));
        assert_eq!(all["apps"]["a"]["settings"]["plain"].as_str(), Some("text"));
    }
}
