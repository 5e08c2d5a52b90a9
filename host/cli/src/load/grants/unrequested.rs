//! Granted permissions that have no effect, because nothing requests them.

use std::collections::BTreeSet;

use wattle_graph::id::PluginName;
use wattle_run::grant::{GrantKey, RequestPlace};

use crate::config::GrantSpec;
use crate::load::grants::{covers, http_rule_toml, memory, serde_name};

/// Returns the permissions of a table of which no request contains a part, as lines of TOML with
/// one line for each kind. Permissions that only the operator decides need no request.
pub(crate) fn unrequested(granted: &GrantSpec, requests: &[&GrantSpec]) -> Vec<String> {
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

/// Returns notes about granted permissions that the manifest in the component of a standalone
/// plugin does not request.
pub(super) fn notes(
    plugin: &PluginName,
    key: &GrantKey,
    granted: Option<&GrantSpec>,
    needs: &GrantSpec,
) -> Vec<String> {
    let lines = granted.map(|granted| unrequested(granted, &[needs])).unwrap_or_default();
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
    use super::*;

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
}
