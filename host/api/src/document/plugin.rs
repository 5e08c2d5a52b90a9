//! JSON representations of plugins.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_run::grant::{GrantRequest, Grants, MissingGrant};
use wattle_run::meter::plugin_use::{Denial, PluginUse, PluginUsed};
use wattle_run::ports::sandbox::{PluginInfo, RefusedFunction, ToolInfo};

/// A plugin, with its grants in one app.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PluginDocument {
    /// Name of the plugin.
    pub name: String,
    /// App that uses the plugin; absent if none does. `grants` and `use` are then those of its calls
    /// outside of apps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Digest of the component.
    pub digest: String,
    /// Size of the component in bytes.
    pub size_bytes: u64,
    /// Version of the `wattle:plugin` interface for which the plugin was built. Empty for a typed
    /// component, whose functions are tools.
    pub contract: String,
    /// Exported interfaces. A typed component also lists its exported functions.
    pub exports: Vec<String>,
    /// Imported interfaces.
    pub imports: Vec<String>,
    /// Nodes of the plugin.
    pub nodes: Vec<NodeDocument>,
    /// Names of the plugin's tools.
    pub tools: Vec<String>,
    /// Names of the plugin's reducers.
    pub reducers: Vec<String>,
    /// Endpoints of the plugin, as `GET /path`.
    pub routes: Vec<String>,
    /// Functions of a typed component that are not tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedFunctionDocument>,
    /// The manifest in the component, as TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Permissions of the plugin. Everything else is denied.
    pub grants: GrantsDocument,
    /// Permissions that the plugin requests, from `app.toml` or from the manifest in the component.
    #[serde(default)]
    #[schema(required = true)]
    pub needs: GrantsDocument,
    /// Requested permissions that are not granted.
    #[serde(default)]
    #[schema(required = true)]
    pub missing: Vec<MissingGrantDocument>,
    /// Further notes about the permissions, such as an invalid manifest.
    #[serde(default)]
    #[schema(required = true)]
    pub notes: Vec<String>,
    /// The tools of the plugin with their schemas.
    #[serde(default)]
    #[schema(required = true)]
    pub tool_schemas: Vec<PluginToolDocument>,
    /// What the plugin has used in the app since the server started.
    #[serde(default, rename = "use")]
    #[schema(required = true)]
    pub used: PluginUseDocument,
}

/// A requested permission that is not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingGrantDocument {
    /// Name of the permission, such as `llm`.
    pub need: String,
    /// Line of TOML that grants the permission.
    pub line: String,
    /// Table of wattle.toml to which the line belongs, such as `grants.shop`.
    pub table: String,
}

/// A tool of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PluginToolDocument {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// True if the tool declares that it changes nothing.
    #[serde(default)]
    #[schema(required = true)]
    pub read_only: bool,
    /// True if the tool declares that a repeated call has no further effect.
    #[serde(default)]
    #[schema(required = true)]
    pub idempotent: bool,
}

/// What a plugin has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginUseDocument {
    /// Calls of nodes, tools, reducers and the web handler. Each attempt of a node counts.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Host calls of the plugin that were denied.
    pub denied: u64,
    /// CPU time in milliseconds, without that of reducers.
    pub cpu_ms: u64,
    /// The most memory of one call in bytes, without those of reducers.
    pub memory_peak_bytes: u64,
    /// The newest denied host calls, newest first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<DenialDocument>,
}

/// A host call of a plugin that was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DenialDocument {
    /// Time of the call, in milliseconds since 1970.
    pub at_ms: i64,
    /// Interface and function, such as `http.send`.
    pub function: String,
    /// Why the call was denied, at most 2,000 characters. The message of a missing grant names the
    /// line to add and its table.
    pub message: String,
    /// Tenant for which the plugin made the call; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Thread of the call; absent for a call of a web handler, and of a tool or node that a client
    /// called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Run of the call; absent like the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl From<&PluginUse> for PluginUseDocument {
    fn from(counters: &PluginUse) -> Self {
        let PluginUsed { calls, failed, denied, cpu_us, memory_peak_bytes } = counters.used();
        // A plugin that used any time shows at least a millisecond.
        let cpu_ms = cpu_us.div_ceil(1_000);
        let denials = counters.denials().into_iter().map(Into::into).collect();
        Self { calls, failed, denied, cpu_ms, memory_peak_bytes, denials }
    }
}

impl From<Denial> for DenialDocument {
    fn from(Denial { at_ms, function, message, tenant, run }: Denial) -> Self {
        let (thread, run) = run.unzip();
        Self {
            at_ms,
            function: function.to_owned(),
            message,
            tenant,
            thread: thread.map(String::from),
            run: run.map(String::from),
        }
    }
}

impl From<&MissingGrant> for MissingGrantDocument {
    fn from(MissingGrant { need, line, table }: &MissingGrant) -> Self {
        let table = format!("grants.{table}");
        Self { need: (*need).to_owned(), line: line.clone(), table }
    }
}

impl From<&ToolInfo> for PluginToolDocument {
    fn from(tool: &ToolInfo) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.arguments_schema.clone(),
            read_only: tool.hints.read_only,
            idempotent: tool.hints.idempotent,
        }
    }
}

/// A node of a plugin.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeDocument {
    /// Name of the node.
    pub name: String,
    /// Description of the node.
    pub doc: String,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// JSON Schema of the output.
    pub output_schema: Value,
    /// JSON Schema of the configuration in a graph; absent if the node takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
}

/// A function of a typed component that is not a tool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedFunctionDocument {
    /// The function, such as `acme:shop/orders.open`.
    pub function: String,
    /// Reason why the function is not a tool.
    pub reason: String,
}

/// Permissions of a plugin.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GrantsDocument {
    /// Model routes that the plugin can call.
    pub llm: Vec<String>,
    /// Rules for outbound HTTP. Secrets are shown by name only.
    pub http: Vec<Value>,
    /// Databases by name, each with `read-only`, `read-write`, or an object with `access` and the
    /// limits of readers: `tables`, `schema`, `functions`, `timeout_ms`, `rows`, `bytes`.
    pub sql: Value,
    /// Tools of other plugins and of MCP servers, such as `date/*` and `mcp:graph/list`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Namespaces of the long-term memory, each with a `namespace` prefix and `access`: `read` or
    /// `read-write`.
    #[serde(default)]
    pub memory: Vec<Value>,
    /// Model routes that the plugin's endpoints may set for a tenant.
    #[serde(default)]
    pub tenant_routes: Vec<String>,
    /// Names of the environment variables of a typed component.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Folders of a typed component, each with its `path` on the host, its path for the component
    /// (`guest`) and `access`: `read-only` or `read-write`.
    #[serde(default)]
    pub folders: Vec<Value>,
    /// Resource limits of the plugin.
    pub limits: Value,
}

impl From<&Grants> for GrantsDocument {
    fn from(grants: &Grants) -> Self {
        let json = |rule| serde_json::to_value(rule).unwrap_or_default();
        Self {
            llm: grants.llm.iter().cloned().collect(),
            http: grants.http.iter().map(json).collect(),
            environment: grants.environment.keys().cloned().collect(),
            folders: grants
                .folders
                .iter()
                .map(|rule| serde_json::to_value(rule).unwrap_or_default())
                .collect(),
            sql: serde_json::to_value(&grants.sql).unwrap_or_default(),
            tools: grants.tools.iter().map(ToString::to_string).collect(),
            memory: grants
                .memory
                .iter()
                .map(|rule| serde_json::to_value(rule).unwrap_or_default())
                .collect(),
            tenant_routes: grants.tenant_routes.iter().cloned().collect(),
            limits: serde_json::to_value(&grants.limits).unwrap_or_default(),
        }
    }
}

impl PluginDocument {
    /// Describes a plugin. `app` is `None` for a plugin that no app uses.
    pub fn new(
        app: Option<&str>,
        info: &PluginInfo,
        grants: &Grants,
        request: &GrantRequest,
    ) -> Self {
        let node = |node: &wattle_run::ports::sandbox::NodeInfo| NodeDocument {
            name: node.name.clone(),
            doc: node.doc.clone(),
            input_schema: node.input_schema.clone(),
            output_schema: node.output_schema.clone(),
            config_schema: node.config_schema.clone(),
        };
        let refused = |refused: &RefusedFunction| RefusedFunctionDocument {
            function: refused.function.clone(),
            reason: refused.reason.clone(),
        };
        Self {
            name: info.name.to_string(),
            app: app.map(ToOwned::to_owned),
            digest: info.digest.to_string(),
            size_bytes: info.size_bytes,
            contract: info.contract.clone(),
            exports: info.exports.clone(),
            imports: info.imports.clone(),
            nodes: info.nodes.iter().map(node).collect(),
            tools: info.tools.iter().map(|tool| tool.name.clone()).collect(),
            reducers: info.reducers.iter().map(|reducer| reducer.name.clone()).collect(),
            routes: info
                .routes
                .iter()
                .map(|route| format!("{} {}", route.method, route.path))
                .collect(),
            refused: info.refused.iter().map(refused).collect(),
            manifest: info.manifest.clone(),
            grants: grants.into(),
            needs: (&request.needs).into(),
            missing: request.missing.iter().map(Into::into).collect(),
            notes: request.notes.clone(),
            tool_schemas: info.tools.iter().map(Into::into).collect(),
            used: PluginUseDocument::default(),
        }
    }

    /// Adds what the plugin has used.
    #[must_use]
    pub fn with_use(self, counters: &PluginUse) -> Self {
        Self { used: counters.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_run::grant::{
        FolderAccess, FolderRule, MemoryAccess, MemoryRule, SqlAccess, SqlRule,
    };

    use super::*;

    #[test]
    fn grants_document_contains_the_details_of_each_grant() {
        let mut grants = Grants {
            tools: vec!["date/*".parse().unwrap(), "mcp:graph/list".parse().unwrap()],
            memory: vec![MemoryRule {
                namespace: vec!["users".to_owned()],
                access: MemoryAccess::ReadWrite,
            }],
            tenant_routes: ["chat".to_owned()].into(),
            ..Grants::default()
        };
        grants.environment.insert("REGION".to_owned(), "north".to_owned());
        grants.folders.push(FolderRule {
            path: "/srv/reports".into(),
            guest: "/reports".to_owned(),
            access: FolderAccess::ReadOnly,
        });
        let reader = SqlRule {
            tables: Some(["orders".to_owned()].into()),
            schema: true,
            rows: Some(100),
            timeout_ms: Some(5_000),
            ..SqlAccess::ReadOnly.into()
        };
        grants.sql.insert("sales".to_owned(), reader);
        grants.sql.insert("own".to_owned(), SqlAccess::ReadWrite.into());
        let shown = serde_json::to_value(GrantsDocument::from(&grants)).unwrap();
        assert_eq!(shown["tools"], json!(["date/*", "mcp:graph/list"]));
        let memory = json!([{ "namespace": ["users"], "access": "read-write" }]);
        assert_eq!(shown["memory"], memory);
        assert_eq!(shown["tenant_routes"], json!(["chat"]));
        assert_eq!(shown["environment"], json!(["REGION"]));
        let folder = json!({ "path": "/srv/reports", "guest": "/reports", "access": "read-only" });
        assert_eq!(shown["folders"], json!([folder]));
        let sales = json!({
            "access": "read-only", "tables": ["orders"], "schema": true, "timeout_ms": 5_000,
            "rows": 100,
        });
        assert_eq!(shown["sql"], json!({ "own": "read-write", "sales": sales }));
    }
}
