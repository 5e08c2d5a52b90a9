//! Grants of plugins: the intersection of requested and granted permissions.

mod memory;
mod policy;
mod tables;
mod unrequested;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use wattle_graph::id::PluginName;
use wattle_graph::toml_depth;
use wattle_run::grant::{
    GrantKey, GrantRequest, GrantSides, Grants, HttpRule, InDoubtPolicy, MissingGrant,
    RequestPlace, ToolGrant,
};
use wattle_run::ports::sandbox::PluginInfo;

pub(crate) use self::policy::Policy;
pub use self::tables::{GrantTables, KnownNames, PluginTable};
pub use self::unrequested::UnrequestedGrant;
pub(crate) use self::unrequested::unrequested_grants;
use crate::config::{GrantSpec, intersect_sql_rules};

/// The grants of a plugin, and what it requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrantDecision {
    /// Permissions of the plugin.
    pub grants: Grants,
    /// Requested permissions, and what of them is not granted.
    pub request: GrantRequest,
}

/// Returns the permissions that a plugin requests in its own manifest. A plugin without a manifest
/// counts as requesting exactly the permissions that it is granted.
///
/// # Errors
///
/// A message if the manifest is invalid.
pub fn requested(plugin: &PluginInfo, granted: Option<&GrantSpec>) -> Result<GrantSpec, String> {
    let Some(manifest) = &plugin.manifest else {
        return Ok(granted.cloned().unwrap_or_default());
    };
    let invalid = |reason: &str| {
        format!(
            "plugin `{}` is granted nothing, because its manifest is invalid: {reason}\n  hint: \
             build it with a manifest of `llm`, `http`, `sql`, `tools`, `memory`, `tenant_routes` \
             and `limits`",
            plugin.name
        )
    };
    toml_depth::check(manifest).map_err(|error| invalid(&error.to_string()))?;
    toml::from_str(manifest).map_err(|error| invalid(error.message()))
}

/// Decides the grants of a plugin.
///
/// `key` is the name of the plugin's table, which messages contain, and `granted` is the content of
/// the table. A plugin without a table gets no permissions, unless the operator trusts its app, in
/// which case it gets the permissions that it requests. Only the operator decides:
///
/// * the hosts of HTTP rules, because settings can direct an app to other hosts than its author
///   intended; the request of the plugin limits methods and secrets;
/// * environment variables and folders, because they belong to the operator's machine;
/// * whether a call in doubt is made again, because its effect may happen twice.
pub fn decide(
    key: &GrantKey,
    needs: &GrantSpec,
    granted: Option<&GrantSpec>,
    is_trusted: bool,
) -> GrantDecision {
    let nothing = GrantSpec::default();
    let operator = granted.unwrap_or(&nothing);
    let granted = match granted {
        Some(granted) => granted,
        None if is_trusted => needs,
        None => &nothing,
    };
    let mut all_missing = Vec::new();
    let mut missing = |need: &'static str, line: String| {
        all_missing.push(MissingGrant { need, line, table: key.clone() });
    };
    let lists = [
        ("llm", &needs.llm, &granted.llm),
        ("tenant_routes", &needs.tenant_routes, &granted.tenant_routes),
    ];
    for (need, needed, given) in lists {
        let refused: Vec<&String> = needed.difference(given).collect();
        if !refused.is_empty() {
            missing(need, format!("{need} = {}", toml_array(refused)));
        }
    }
    let (tools, refused) = intersect_tools(&needs.tools, &granted.tools);
    if !refused.is_empty() {
        missing("tools", format!("tools = {}", toml_array(refused)));
    }
    let (memory, refused) = memory::intersect(&needs.memory, &granted.memory);
    if !refused.is_empty() {
        missing("memory", format!("memory = [{}]", refused.join(", ")));
    }
    for name in needs.environment.keys() {
        if !operator.environment.contains_key(name) {
            missing("environment", format!("environment = {{ {name} = \"...\" }}"));
        }
    }
    for folder in &needs.folders {
        if operator.folders.iter().all(|given| given.guest != folder.guest) {
            let (guest, access) = (&folder.guest, serde_name(&folder.access));
            let line = format!(
                "folders = [{{ path = \"...\", guest = \"{guest}\", access = \"{access}\" }}]"
            );
            missing("folders", line);
        }
    }
    if needs.in_doubt != InDoubtPolicy::default() && needs.in_doubt != operator.in_doubt {
        missing("in_doubt", format!("in_doubt = \"{}\"", serde_name(&needs.in_doubt)));
    }
    let granted_databases = granted.databases();
    let mut sql = needs.databases();
    for (database, rule) in &sql {
        if granted_databases.get(database).is_none_or(|given| given.access < rule.access) {
            let access = serde_name(&rule.access);
            let line = format!("sql = [{{ database = \"{database}\", access = \"{access}\" }}]");
            missing("sql", line);
        }
    }
    sql.retain(|database, rule| match granted_databases.get(database) {
        Some(given) => {
            *rule = intersect_sql_rules(rule, given);
            true
        }
        None => false,
    });
    if granted.http.is_empty() {
        for rule in &needs.http {
            missing("http", format!("http = [{}]", http_rule_toml(rule)));
        }
    }
    let grants = Grants {
        llm: needs.llm.intersection(&granted.llm).cloned().collect(),
        http: limit_http_rules(&needs.http, &granted.http),
        sql,
        tools,
        memory,
        tenant_routes: needs.tenant_routes.intersection(&granted.tenant_routes).cloned().collect(),
        in_doubt: operator.in_doubt,
        limits: granted.limits.limits(),
        environment: operator.environment.clone(),
        folders: operator.folders.clone(),
        key: Some(key.clone()),
        sides: None,
    };
    let needs = as_grants(needs);
    let request = GrantRequest { needs, missing: all_missing, notes: Vec::new() };
    GrantDecision { grants, request }
}

/// Decides about a standalone plugin that no app uses. It requests the permissions of its own
/// manifest, and `[grants.<plugin>]` is its table. `of_apps` is what apps with this table request
/// for the plugin: there are no notes about it.
pub fn decide_standalone(
    plugin: &PluginInfo,
    granted: Option<&GrantSpec>,
    of_apps: &[&GrantSpec],
) -> GrantDecision {
    let mut notes = Vec::new();
    let needs = requested(plugin, granted).unwrap_or_else(|problem| {
        notes.push(problem);
        GrantSpec::default()
    });
    let key = GrantKey::of_plugin(&plugin.name);
    let place = plugin.manifest.is_some().then_some(RequestPlace::Component);
    if place.is_some() && notes.is_empty() {
        notes = unrequested::notes(&plugin.name, &key, granted, &needs, of_apps);
    }
    let decision = decide(&key, &needs, granted, false).with_sides(place, granted, false);
    decision.for_plugin(plugin).with_notes(notes)
}

/// Returns the permissions of one side in the form of grants.
fn as_grants(needs: &GrantSpec) -> Grants {
    Grants {
        llm: needs.llm.clone(),
        http: needs.http.clone(),
        sql: needs.databases(),
        tools: needs.tools.iter().cloned().collect(),
        memory: needs.memory.iter().cloned().collect(),
        tenant_routes: needs.tenant_routes.clone(),
        in_doubt: needs.in_doubt,
        limits: needs.limits.limits(),
        environment: needs.environment.clone(),
        folders: needs.folders.clone(),
        key: None,
        sides: None,
    }
}

impl GrantDecision {
    /// Adds the two sides of the decision, for messages about denied calls. `place` is the place of
    /// the request, unless the plugin counts as requesting what it is granted.
    #[must_use]
    fn with_sides(
        mut self,
        place: Option<RequestPlace>,
        granted: Option<&GrantSpec>,
        is_trusted: bool,
    ) -> Self {
        let request = place.map(|place| (place, self.request.needs.clone()));
        let granted = match granted {
            None if is_trusted => None,
            granted => Some(granted.map(as_grants).unwrap_or_default()),
        };
        self.grants.sides = Some(Arc::new(GrantSides { request, granted }));
        self
    }

    /// Adds notes for the operator before the others.
    #[must_use]
    pub fn with_notes(mut self, mut notes: Vec<String>) -> Self {
        notes.append(&mut self.request.notes);
        self.request.notes = notes;
        self
    }

    /// Returns the notes for the operator about a plugin of an app. Without a request of the app,
    /// the notes about `[grants.<plugin>]` are the same in all apps. They are left out, because they
    /// are sent once for the plugin.
    pub(crate) fn notes_in_app(&self) -> &[String] {
        let Grants { key, sides, .. } = &self.grants;
        let is_for_all = key.as_ref().is_some_and(|key| key.app.is_none());
        let is_of_plugin = sides.as_ref().is_some_and(|sides| match &sides.request {
            Some((place, _)) => *place == RequestPlace::Component,
            None => true,
        });
        if is_for_all && is_of_plugin { &[] } else { &self.request.notes }
    }

    /// Returns all notes for the operator about a plugin of an app. The last ones are about
    /// requests that are not granted, each with the line to add to the configuration.
    pub fn messages(&self, plugin: &PluginName) -> Vec<String> {
        let missing = self.request.missing.iter().map(|MissingGrant { line, table, .. }| {
            format!(
                "plugin `{plugin}` requests more than it is granted\n  hint: add `{line}` under \
                 `[grants.{table}]` in wattle.toml"
            )
        });
        self.notes_in_app().iter().cloned().chain(missing).collect()
    }

    /// Removes environment and folders from the grants of a plugin that is not a typed component,
    /// and adds a note. Only typed components get them, because a node that reads a file could read
    /// other content in a re-execution.
    #[must_use]
    pub fn for_plugin(mut self, plugin: &PluginInfo) -> Self {
        let grants = &mut self.grants;
        if plugin.contract.is_empty() || grants.environment.is_empty() && grants.folders.is_empty()
        {
            return self;
        }
        grants.environment.clear();
        grants.folders.clear();
        let key = grants.key.clone().unwrap_or_else(|| GrantKey::of_plugin(&plugin.name));
        self.request.notes.push(format!(
            "plugin `{}` is granted `environment` or `folders`, which only typed components get\n  \
             hint: take them out of `[grants.{key}]` in wattle.toml, and use `settings`, blobs or \
             the long-term memory",
            plugin.name
        ));
        self
    }
}

/// Returns the tools that are both requested and granted, and the requests that are not granted.
/// Both sets can contain `plugin/*`; of two entries that overlap, the narrower one applies.
fn intersect_tools<'n>(
    needs: &'n BTreeSet<ToolGrant>,
    granted: &BTreeSet<ToolGrant>,
) -> (Vec<ToolGrant>, Vec<&'n ToolGrant>) {
    let (mut given, mut refused) = (BTreeSet::new(), Vec::new());
    for need in needs {
        if granted.iter().any(|grant| covers(grant, need)) {
            given.insert(need.clone());
        } else {
            given.extend(granted.iter().filter(|grant| covers(need, grant)).cloned());
            refused.push(need);
        }
    }
    (given.into_iter().collect(), refused)
}

/// Returns true if one entry contains all tools of another one.
fn covers(wide: &ToolGrant, narrow: &ToolGrant) -> bool {
    wide.source == narrow.source && (wide.tool.is_none() || wide.tool == narrow.tool)
}

fn limit_http_rules(needs: &[HttpRule], granted: &[HttpRule]) -> Vec<HttpRule> {
    let methods: BTreeSet<&String> = needs.iter().flat_map(|rule| &rule.methods).collect();
    let secrets: BTreeSet<&String> = needs.iter().flat_map(|rule| &rule.secrets).collect();
    let mut rules = granted.to_vec();
    for rule in &mut rules {
        rule.methods.retain(|method| methods.contains(method));
        rule.secrets.retain(|secret| secrets.contains(secret));
    }
    rules.retain(|rule| !rule.methods.is_empty());
    rules
}

/// Formats a rule as TOML. Omits default values.
fn http_rule_toml(rule: &HttpRule) -> String {
    let mut parts = vec![format!("host = \"{}\"", rule.host)];
    if rule.scheme != "https" {
        parts.push(format!("scheme = \"{}\"", rule.scheme));
    }
    parts.extend(rule.port.map(|port| format!("port = {port}")));
    parts.push(format!("methods = {}", toml_array(&rule.methods)));
    if !rule.secrets.is_empty() {
        parts.push(format!("secrets = {}", toml_array(&rule.secrets)));
    }
    if rule.private {
        parts.push("private = true".to_owned());
    }
    format!("{{ {} }}", parts.join(", "))
}

/// Formats strings as a TOML array.
fn toml_array(words: impl IntoIterator<Item = impl Display>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("\"{word}\"")).collect();
    format!("[{}]", words.join(", "))
}

fn serde_name(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::Digest;
    use wattle_run::grant::SqlAccess;

    use super::*;

    fn needs(text: &str) -> GrantSpec {
        toml::from_str(text).unwrap()
    }

    const REQUESTED: &str = r#"
        llm = ["vision", "chat"]
        http = [{ host = "api.massive.com", methods = ["GET"], secrets = ["KEY"] }]
        sql = [{ database = "asset", access = "read-write" }]
    "#;

    /// Returns grants without permissions.
    fn nothing(plugin: &str) -> Grants {
        let key = GrantKey::of_plugin(&PluginName::new(plugin).unwrap());
        Grants { key: Some(key), ..Grants::default() }
    }

    fn messages(decision: &GrantDecision) -> Vec<String> {
        decision.messages(&PluginName::new("asset").unwrap())
    }

    fn check(granted: Option<&str>, is_trusted: bool) -> GrantDecision {
        let plugin = PluginName::new("asset").unwrap();
        let key = GrantKey::of_plugin(&plugin);
        decide(&key, &needs(REQUESTED), granted.map(needs).as_ref(), is_trusted)
    }

    #[test]
    fn an_unknown_app_gets_nothing_and_notes_what_to_add() {
        let decision = check(None, false);
        assert_eq!(decision.grants, nothing("asset"));
        insta::assert_snapshot!(messages(&decision).join("\n"));
        let missing: Vec<_> = decision.request.missing.iter().map(|it| it.need).collect();
        assert_eq!(missing, ["llm", "sql", "http"]);
        assert_eq!(decision.request.needs.sql["asset"].access, SqlAccess::ReadWrite);
    }

    #[test]
    fn a_trusted_app_gets_what_it_requests() {
        let decision = check(None, true);
        assert!(messages(&decision).is_empty());
        assert_eq!(decision.grants.sql["asset"].access, SqlAccess::ReadWrite);
        assert_eq!(decision.grants.http[0].host, "api.massive.com");
    }

    #[test]
    fn a_table_of_the_operator_limits_the_grants() {
        let decision = check(Some(r#"llm = ["chat", "other"]"#), true);
        assert_eq!(decision.grants.llm, ["chat".to_owned()].into());
        assert!(decision.grants.http.is_empty() && decision.grants.sql.is_empty());
        assert_eq!(decision.request.missing.len(), 3);
    }

    #[test]
    fn tools_are_intersected() {
        let requested = r#"tools = ["date/*", "lark/save", "mcp:graph/list"]"#;
        let granted = r#"tools = ["date/parse", "date/format", "lark/*", "other/x"]"#;
        let plugin = PluginName::new("std").unwrap();
        let key = GrantKey::of_plugin(&plugin);
        let decision = decide(&key, &needs(requested), Some(&needs(granted)), false);
        let tools: Vec<String> = decision.grants.tools.iter().map(ToString::to_string).collect();
        assert_eq!(tools, ["date/format", "date/parse", "lark/save"]);
        let missing = &decision.request.missing[0];
        assert_eq!(missing.line, r#"tools = ["date/*", "mcp:graph/list"]"#);
    }

    #[test]
    fn only_the_operator_gives_environment_and_folders_and_only_to_typed_components() {
        let requested = r#"
            environment = { REGION = "south" }
            folders = [{ path = "/", guest = "/reports", access = "read-write" }]
        "#;
        let table = r#"
            environment = { REGION = "north", OTHER = "x" }
            folders = [{ path = "/srv/reports", guest = "/reports" }]
        "#;
        let plugin = PluginName::new("shop").unwrap();
        let key = GrantKey::of_plugin(&plugin);
        let trusted = decide(&key, &needs(requested), None, true);
        assert_eq!(trusted.grants, nothing("shop"));
        let line = r#"folders = [{ path = "...", guest = "/reports", access = "read-write" }]"#;
        assert_eq!(trusted.request.missing[1].line, line);
        let given = decide(&key, &needs(requested), Some(&needs(table)), true);
        assert!(messages(&given).is_empty());
        assert_eq!(given.grants.environment["REGION"], "north");
        assert!(!given.grants.may_write_files());
        let info = |contract: &str| PluginInfo {
            name: plugin.clone(),
            digest: Digest::of(b"shop"),
            size_bytes: 0,
            contract: contract.to_owned(),
            imports: Vec::new(),
            exports: Vec::new(),
            nodes: Vec::new(),
            tools: Vec::new(),
            reducers: Vec::new(),
            routes: Vec::new(),
            refused: Vec::new(),
            manifest: None,
        };
        assert_eq!(given.clone().for_plugin(&info("")), given);
        let other = given.for_plugin(&info("0.1.0"));
        assert_eq!(other.grants, nothing("shop"));
        let notes = messages(&other);
        assert!(notes[0].contains("only typed components"), "{notes:?}");
    }

    #[test]
    fn only_the_operator_can_permit_to_repeat_a_call_in_doubt() {
        let plugin = PluginName::new("shop").unwrap();
        let key = GrantKey::of_plugin(&plugin);
        let requested = needs(r#"in_doubt = "retry""#);
        let trusted = decide(&key, &requested, None, true);
        assert_eq!(trusted.grants.in_doubt, InDoubtPolicy::Fail);
        assert_eq!(trusted.request.missing[0].line, r#"in_doubt = "retry""#);
        let given = decide(&key, &requested, Some(&requested), true);
        assert_eq!(given.grants.in_doubt, InDoubtPolicy::Retry);
        assert!(messages(&given).is_empty());
    }

    #[test]
    fn the_operator_can_change_the_host_but_not_extend_methods_and_secrets() {
        let table = r#"
            http = [{ host = "127.0.0.1", scheme = "http", port = 9000, private = true,
                      methods = ["GET", "POST"], secrets = ["KEY", "OTHER"] }]
        "#;
        let rule = &check(Some(table), true).grants.http[0];
        assert_eq!((rule.host.as_str(), rule.private), ("127.0.0.1", true));
        assert_eq!(rule.methods, ["GET"]);
        assert_eq!(rule.secrets, ["KEY".to_owned()].into());
    }
}
