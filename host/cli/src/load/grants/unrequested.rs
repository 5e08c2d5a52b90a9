//! Granted permissions that have no effect, because nothing requests them.

use std::collections::BTreeSet;
use std::fmt;

use wattle_graph::id::PluginName;
use wattle_run::grant::{GrantKey, RequestPlace};

use crate::config::GrantSpec;
use crate::load::grants::{GrantTables, covers, http_rule_toml, memory, serde_name};

/// A granted permission that has no effect, because nothing requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrequestedGrant {
    /// The permission, as a line of TOML.
    pub line: String,
    /// The table, as in `wattle.toml`.
    pub table: String,
    /// Where to request the permission.
    pub hint: String,
}

impl fmt::Display for UnrequestedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, table, .. } = self;
        write!(f, "`{line}` under `{table}` has no effect, because nothing requests it")
    }
}

/// Returns the granted permissions that have no effect, because the apps to which their table
/// applies do not request them, neither on disk nor in a version in use. Tables of plugins that may
/// have a request in their component are left out: the load of the component notes what it does not
/// request.
pub(crate) fn unrequested_grants(tables: &GrantTables) -> Vec<UnrequestedGrant> {
    let mut found = Vec::new();
    for (key, granted) in tables.by_key().iter().filter(|(key, _)| !tables.is_of_standalone(key)) {
        let (mut places, mut requests) = (BTreeSet::new(), Vec::new());
        for request in tables.current_requests(key) {
            let Some((place, needs)) = request.for_plugin(&key.plugin) else { continue };
            places.insert(format!("{place} of app `{}`", request.app));
            requests.push(needs);
        }
        let mut is_known = true;
        for request in tables.requests_in_use(key) {
            match request.for_plugin(&key.plugin) {
                Some((_, needs)) => requests.push(needs),
                // The version may use the plugin with the request in the component.
                None => is_known &= key.app.is_none(),
            }
        }
        if places.is_empty() || !is_known {
            continue;
        }
        let places: Vec<String> = places.into_iter().collect();
        let table = format!("[grants.{key}]");
        let hint = format!("add it {}, or take it out of `{table}`", places.join(" or "));
        found.extend(unrequested(granted, &requests).into_iter().map(|line| UnrequestedGrant {
            line,
            table: table.clone(),
            hint: hint.clone(),
        }));
    }
    found
}

/// Returns the permissions of a table of which no request contains a part, as lines of TOML with
/// one line for each kind. Permissions that only the operator decides need no request.
fn unrequested(granted: &GrantSpec, requests: &[&GrantSpec]) -> Vec<String> {
    let routes = |granted: &BTreeSet<String>, of: fn(&GrantSpec) -> &BTreeSet<String>| {
        let is_requested = |route: &String| requests.iter().any(|it| of(it).contains(route));
        let unused = granted.iter().filter(|route| !is_requested(route));
        unused.map(|route| format!("\"{route}\"")).collect::<Vec<String>>()
    };
    let tools = granted.tools.iter().filter(|tool| {
        let mut requested = requests.iter().flat_map(|it| &it.tools);
        !requested.any(|need| covers(tool, need) || covers(need, tool))
    });
    let namespaces = granted.memory.iter().filter(|rule| {
        let mut requested = requests.iter().flat_map(|it| &it.memory);
        !requested.any(|need| memory::intersect_rule(need, rule).is_some())
    });
    let databases = granted.databases().into_iter().filter(|(database, _)| {
        let mut requested = requests.iter().flat_map(|it| &it.sql);
        !requested.any(|need| need.database == *database)
    });
    let databases = databases.map(|(database, rule)| {
        format!("{{ database = \"{database}\", access = \"{}\" }}", serde_name(&rule.access))
    });
    // The operator alone decides about hosts, and a request limits methods.
    let hosts = granted.http.iter().filter(|rule| {
        let mut requested = requests.iter().flat_map(|it| &it.http).flat_map(|it| &it.methods);
        !requested.any(|method| rule.methods.contains(method))
    });
    let kinds = [
        ("llm", routes(&granted.llm, |spec| &spec.llm)),
        ("tenant_routes", routes(&granted.tenant_routes, |spec| &spec.tenant_routes)),
        ("tools", tools.map(|tool| format!("\"{tool}\"")).collect()),
        ("memory", namespaces.map(memory::rule_toml).collect()),
        ("sql", databases.collect()),
        ("http", hosts.map(http_rule_toml).collect()),
    ];
    let kinds = kinds.into_iter().filter(|(_, entries)| !entries.is_empty());
    kinds.map(|(kind, entries)| format!("{kind} = [{}]", entries.join(", "))).collect()
}

/// Returns notes about granted permissions that neither the manifest in the component of a
/// standalone plugin requests nor an app to which the table applies. `needs` are those of the
/// manifest, and `of_apps` are those of the apps.
pub(super) fn notes(
    plugin: &PluginName,
    key: &GrantKey,
    granted: Option<&GrantSpec>,
    needs: &GrantSpec,
    of_apps: &[&GrantSpec],
) -> Vec<String> {
    let requests: Vec<&GrantSpec> = of_apps.iter().copied().chain([needs]).collect();
    let lines = granted.map(|granted| unrequested(granted, &requests)).unwrap_or_default();
    let note = |line: String| {
        let place = RequestPlace::AppForPlugin(plugin.clone());
        format!(
            "plugin `{plugin}` is granted `{line}`, which its own manifest does not request\n  \
             hint: take it out of `[grants.{key}]` in wattle.toml, or have an app request all that \
             the plugin needs {place}"
        )
    };
    lines.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::slice::from_ref;

    use super::*;
    use crate::config::parse;
    use crate::load::app_request::{AppRequest, AppRequests};
    use crate::load::grants::KnownNames;

    fn spec(text: &str) -> GrantSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn permissions_are_unrequested_if_no_request_has_a_part_of_them() {
        let granted = spec(
            r#"
            llm = ["chat", "vision"]
            tenant_routes = ["chat"]
            tools = ["date/*", "lark/save"]
            memory = [{ namespace = ["users"], access = "read-write" }, { namespace = ["facts"] }]
            sql = [{ database = "notes", access = "read-write" }, { database = "sales" }]
            http = [{ host = "a.example" }, { host = "b.example", methods = ["POST"] }]
            limits = { cpu = "3s" }
            environment = { REGION = "north" }
            "#,
        );
        let one = spec(
            r#"
            llm = ["chat"]
            tools = ["date/parse"]
            memory = [{ namespace = ["users", "42"] }]
            "#,
        );
        let other = spec("sql = [{ database = \"notes\" }]\nhttp = [{ host = \"c.example\" }]\n");
        assert_eq!(
            unrequested(&granted, &[&one, &other]),
            [
                "llm = [\"vision\"]",
                "tenant_routes = [\"chat\"]",
                "tools = [\"lark/save\"]",
                "memory = [{ namespace = [\"facts\"], access = \"read\" }]",
                "sql = [{ database = \"sales\", access = \"read-only\" }]",
                "http = [{ host = \"b.example\", methods = [\"POST\"] }]",
            ]
        );
        assert!(unrequested(&granted, &[&granted]).is_empty());
        assert_eq!(unrequested(&one, &[]).len(), 3);
    }

    /// Returns the request of an app whose components have the given names.
    fn app(name: &str, components: &[&str], needs: &str) -> AppRequest {
        let components = components.iter().map(|it| it.parse().unwrap()).collect();
        AppRequest { app: name.parse().unwrap(), components, needs: spec(needs) }
    }

    /// Returns the notes about a configuration on a host with the standalone plugin `std`.
    fn noted(config: &str, current: &[AppRequest], in_use: &[AppRequest]) -> Vec<String> {
        let config = parse(config, Path::new("/")).unwrap();
        let standalone = ["std".parse().unwrap()].into();
        let names = KnownNames { standalone, ..KnownNames::default() };
        let tables = GrantTables::new(&config, config.grants.clone(), names);
        let requests = AppRequests { current: current.to_vec(), in_use: in_use.to_vec() };
        let found = unrequested_grants(&tables.with_requests(requests));
        found.iter().map(|it| format!("{it}: {}", it.hint)).collect()
    }

    const CHAT: &str = "llm = [\"chat\"]\n";

    #[test]
    fn grants_that_no_app_requests_are_found_with_the_place_of_the_request() {
        let needs = format!("{CHAT}[plugins.std]\n{CHAT}");
        let apps = [app("nl2sql", &["nl2sql"], &needs), app("shop", &["desk", "till"], "")];
        let noted = |config: &str| noted(config, &apps, &[]);
        let reason = "has no effect, because nothing requests it: add it under";
        assert_eq!(
            noted("[grants.nl2sql]\nllm = [\"chat\", \"sql\"]\n"),
            [format!(
                "`llm = [\"sql\"]` under `[grants.nl2sql]` {reason} `[needs]` in app.toml of app \
                 `nl2sql`, or take it out of `[grants.nl2sql]`"
            )]
        );
        let found = noted("[grants.\"nl2sql/std\"]\ntools = [\"a/b\"]\nllm = [\"chat\"]\n");
        assert_eq!(found.len(), 1, "{found:?}");
        let place = "`[needs.plugins.std]` in app.toml of app `nl2sql`, or take it out";
        assert!(found[0].contains(&format!("{reason} {place}")), "{found:?}");
        assert_eq!(noted(&format!("[grants.\"shop/desk\"]\n{CHAT}")).len(), 1);
        // The component of a standalone plugin may request what its table grants.
        for table in ["[grants.std]", "[grants.\"shop/std\"]"] {
            let found = noted(&format!("{table}\nllm = [\"vision\"]\n"));
            assert!(found.is_empty(), "{found:?}");
        }
    }

    #[test]
    fn a_former_component_of_an_app_is_a_standalone_plugin() {
        let config = format!("[grants.\"shop/std\"]\n{CHAT}");
        let own = app("shop", &["std"], "");
        assert_eq!(noted(&config, &[own], &[]).len(), 1);
        let now = app("shop", &["desk"], &format!("[plugins.std]\n{CHAT}"));
        assert!(noted(&config, &[now], &[]).is_empty());
        assert!(noted(&config, &[], &[]).is_empty(), "the app was removed");
    }

    #[test]
    fn what_an_app_requests_for_a_plugin_is_not_noted_for_others() {
        let text = "[grants.std]\nllm = [\"chat\", \"vision\", \"sql\", \"light\"]\n\
                    [grants.\"desk/std\"]\nllm = [\"sql\"]\n";
        let config = parse(text, Path::new("/")).unwrap();
        let for_std = |name: &str, route: &str| {
            app(name, &[], &format!("[plugins.std]\nllm = [\"{route}\"]\n"))
        };
        let (current, in_use) = (for_std("shop", "vision"), for_std("shop", "light"));
        let current = vec![current, for_std("desk", "sql"), app("bank", &[], "")];
        let requests = AppRequests { current, in_use: vec![in_use] };
        let tables = GrantTables::new(&config, config.grants.clone(), KnownNames::default());
        let tables = tables.with_requests(requests);
        let plugin: PluginName = "std".parse().unwrap();
        let key = GrantKey::of_plugin(&plugin);
        let granted = tables.table_of_standalone(&plugin);
        let found = notes(&plugin, &key, granted, &spec(CHAT), &tables.needs_of(&key));
        // The table is not for `desk`, which has one of its own.
        let [found] = &found[..] else { panic!("{found:?}") };
        assert!(found.contains("`llm = [\"sql\"]`"), "{found}");
    }

    #[test]
    fn a_grant_that_a_version_in_use_requests_has_an_effect() {
        let (new, old) = (app("shop", &["shop"], ""), app("shop", &["shop"], CHAT));
        let config = format!("[grants.shop]\n{CHAT}");
        assert_eq!(noted(&config, from_ref(&new), from_ref(&new)).len(), 1);
        assert!(noted(&config, &[new], &[old]).is_empty());

        let config = format!("[grants.\"shop/std\"]\n{CHAT}");
        let [new, old] = ["[plugins.std]", CHAT].map(|needs| app("shop", &["shop"], needs));
        assert_eq!(noted(&config, from_ref(&new), &[]).len(), 1);
        // The older version may use the plugin with the request in its component.
        assert!(noted(&config, &[new], &[old]).is_empty());
    }
}
