//! Tool schemas in the form that each provider accepts.
//!
//! The schemas come from plugins and MCP servers, in all drafts and with all kinds of mistakes. A
//! provider checks the schemas of all tools of a request and rejects the whole request because of
//! one invalid schema, even if the model would call another tool. The host therefore adapts the
//! schemas when it writes the request.
//!
//! The sent schema may be wider, but is never narrower: arguments that are valid under the schema
//! of the tool are valid under the sent schema. There are two exceptions. If only some alternatives
//! of a union at the root describe a property, their description applies to all alternatives. If a
//! schema without a type has keywords of objects or arrays, the schema for Gemini gets that type.
//! The host or the MCP server validates arguments against the original schema. A schema that the
//! provider accepts is sent unchanged.
//!
//! # Layout
//!
//! * this file: the requirements of each provider ([`Requirements`]) and the log
//!   ([`SchemaAdapter`]); `cache`: the cache of adapted schemas.
//! * `root`: one pass over a schema, and the form of its root; `merge`: merges a union of objects
//!   into one object.
//! * `walker`: keyword by keyword; `rules`: rules that involve several keywords.
//! * `reference`: `$ref` and `$defs`; `pattern`: regular expressions.
//! * `closed`: schemas of responses for Anthropic, with requirements of their own.

mod cache;
pub(super) mod closed;
mod merge;
mod pattern;
mod reference;
mod root;
mod rules;
mod walker;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use wattle_graph::llm::ToolDefinition;

use crate::config::ProviderKind;
use crate::provider::schema::cache::SchemaCache;
use crate::provider::schema::pattern::Portability;
use crate::structured::strict;

/// Maximum passes over one schema. A change may require another one; two passes are enough for
/// nearly all schemas.
const MAX_PASSES: usize = 8;

/// Maximum changes of one schema in a log message.
const MAX_CHANGES: usize = 12;

/// Maximum log messages about one provider. Further messages are dropped, so that a server that
/// keeps generating new schemas does not flood the log.
const MAX_NOTES: usize = 1000;

/// Maximum characters of the name of a tool in a log message.
const MAX_NAME_CHARS: usize = 128;

/// The requirements of a provider for the schemas of tool arguments. All providers require an
/// object with `type` and `properties` at the root, and no union.
///
/// # Sources
///
/// The documentation ("Function calling" of OpenAI, "Tool use" of Anthropic, `FunctionDeclaration`
/// of the Gemini API) says "JSON Schema" and little more. The rest comes from error messages of the
/// services, as users report them:
///
/// * OpenAI: "object schema missing properties" (openai/openai-agents-python issue 449); "schema
///   must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"
///   (chatanywhere/GPT_API_free issue 403).
/// * Anthropic: "input_schema does not support oneOf, allOf, or anyOf at the top level"
///   (anthropics/claude-code issue 5319); "It must match JSON Schema draft 2020-12"
///   (openclaw/openclaw issue 98588, which lists what is accepted).
/// * Gemini: "value for properties at top-level must be an object"
///   (cbdb-project/cbdb-online-main-server pull request 879). What `parametersJsonSchema` accepts
///   is documented at `responseJsonSchema` of `GenerationConfig`.
#[derive(Debug)]
struct Requirements {
    /// Keywords that are refused at the root.
    rejected_at_root: &'static [&'static str],
    /// Whether the schema of an array requires `items`. Sources: "array schema missing items" of
    /// OpenAI (sigoden/aichat pull request 1049), "items: missing field" of Gemini
    /// (NousResearch/hermes-agent issue 71804).
    requires_items: bool,
    /// Whether names of properties at the root must have 1 to 64 characters of `[a-zA-Z0-9_.-]`.
    /// Source: "Property keys should match pattern" of Anthropic, which checks the root only
    /// (aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws issue
    /// 709).
    requires_plain_keys: bool,
    /// The permitted values of `format`; `None` if every value is permitted. OpenAI checks formats
    /// in strict mode, and some services that speak OpenAI's format always do: "'uri' is not a
    /// valid format" (1jehuang/jcode issue 543). Gemini accepts every value: `Schema` in the
    /// reference of its API.
    formats: Option<&'static [&'static str]>,
    /// The patterns that the provider accepts; other patterns are left out; see `pattern`.
    /// Anthropic accepts look-around (tombii/better-ccflare issue 357). Google's Vertex rejects
    /// `\p{L}` (langfuse/langfuse issue 14770).
    patterns: Portability,
    /// Whether references may point to `definitions`, as before draft 2019-09.
    supports_definitions: bool,
    /// The keywords that are permitted next to a reference; `None` if every keyword is permitted.
    /// Source: "If a schema node has Schema.ref set, then only description and default can be set
    /// alongside it" of Gemini (diegosouzapw/OmniRoute issue 461).
    reference_siblings: Option<&'static [&'static str]>,
    /// Whether a definition may require itself only through properties that are not required.
    /// Sources: `responseJsonSchema` of the Gemini API; "a ref loop of required fields was found"
    /// (juspay/juspay-mcp pull request 132).
    rejects_required_loops: bool,
    /// Whether `enum` must have strings only or numbers only, and `const` is refused. Source:
    /// `responseJsonSchema` of the Gemini API.
    requires_plain_enums: bool,
    /// Whether keywords of objects and arrays require their type, and each required property a
    /// schema. Sources: "only allowed for OBJECT type" (anomalyco/opencode pull request 11888) and
    /// "property is not defined" (probelabs/probe issue 569) of Gemini.
    requires_keyword_types: bool,
    /// Maximum depth of schemas within schemas. Source: "exceeds the maximum allowed nesting depth"
    /// of Gemini (google-gemini/gemini-cli issue 5923), which does not state the limit. Messages of
    /// Google's services have 100 levels by default, of which a property takes six. For other
    /// providers the limit is that of a schema of the host (`limit::SCHEMA_DEPTH`).
    max_depth: usize,
    /// Maximum tools of one request; `None` if there is no limit. Source: `tools` of OpenAI's chat
    /// completions.
    max_tools: Option<usize>,
}

/// The requirements of OpenAI, and of services that speak its format.
static OPENAI: Requirements = Requirements {
    rejected_at_root: &["enum", "const", "not"],
    requires_items: true,
    requires_plain_keys: false,
    formats: Some(&strict::FORMATS),
    patterns: Portability::Portable,
    supports_definitions: true,
    reference_siblings: None,
    rejects_required_loops: false,
    requires_plain_enums: false,
    requires_keyword_types: false,
    max_depth: 32,
    max_tools: Some(128),
};

/// The requirements of Gemini for `parametersJsonSchema`.
static GEMINI: Requirements = Requirements {
    rejected_at_root: &["enum", "const", "not"],
    requires_items: true,
    requires_plain_keys: false,
    formats: None,
    patterns: Portability::Portable,
    supports_definitions: false,
    reference_siblings: Some(&["description", "default"]),
    rejects_required_loops: true,
    requires_plain_enums: true,
    requires_keyword_types: true,
    max_depth: 15,
    max_tools: None,
};

/// The requirements of Anthropic.
static ANTHROPIC: Requirements = Requirements {
    rejected_at_root: &[],
    requires_items: false,
    requires_plain_keys: true,
    formats: None,
    patterns: Portability::Special,
    supports_definitions: true,
    reference_siblings: None,
    rejects_required_loops: false,
    requires_plain_enums: false,
    requires_keyword_types: false,
    max_depth: 32,
    max_tools: None,
};

impl Requirements {
    fn for_kind(kind: ProviderKind) -> &'static Self {
        match kind {
            ProviderKind::Openai => &OPENAI,
            ProviderKind::Gemini => &GEMINI,
            ProviderKind::Anthropic => &ANTHROPIC,
        }
    }

    fn accepts_pattern(&self, pattern: &str) -> bool {
        pattern::classify(pattern) <= self.patterns
    }
}

/// Adapts tool schemas to one provider, and logs the changes once for each tool.
#[derive(Debug)]
pub(super) struct SchemaAdapter {
    provider: String,
    requirements: &'static Requirements,
    logged: Mutex<HashSet<String>>,
    cache: Mutex<SchemaCache>,
}

impl SchemaAdapter {
    pub(super) fn new(provider: &str, kind: ProviderKind) -> Self {
        Self {
            provider: provider.to_owned(),
            requirements: Requirements::for_kind(kind),
            logged: Mutex::default(),
            cache: Mutex::default(),
        }
    }

    /// Writes the tools of a request with schemas that the provider accepts.
    pub(super) fn write_tools(
        &self,
        tools: &[ToolDefinition],
        write: fn(&ToolDefinition, &Value) -> Value,
    ) -> Value {
        self.check_tool_count(tools.len());
        let written = tools.iter().map(|tool| {
            let other = self.adapted(tool);
            write(tool, other.as_deref().unwrap_or(&tool.arguments_schema))
        });
        written.collect()
    }

    /// Returns the adapted schema of a tool; `None` if the schema is sent unchanged.
    fn adapted(&self, tool: &ToolDefinition) -> Option<Arc<Value>> {
        if let Some(known) = self.cache().get(tool) {
            return known.adapted.clone();
        }
        let other = self.adapt_and_log(tool);
        self.cache().insert(tool, other.clone());
        other
    }

    fn cache(&self) -> MutexGuard<'_, SchemaCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn adapt_and_log(&self, tool: &ToolDefinition) -> Option<Arc<Value>> {
        let fitted = adapt(&tool.arguments_schema, self.requirements);
        let changes = fitted.changes.0.join("; ");
        let name = log_excerpt(&tool.name, MAX_NAME_CHARS);
        if !changes.is_empty() && self.is_first(format!("{name}: {changes}")) {
            tracing::info!(
                provider = %self.provider, tool = %name,
                "the schema of the tool's arguments is sent in another form: {changes}"
            );
        }
        match fitted.schema {
            Cow::Borrowed(_) => None,
            Cow::Owned(schema) => Some(Arc::new(schema)),
        }
    }

    fn check_tool_count(&self, tools: usize) {
        let Some(most) = self.requirements.max_tools.filter(|most| tools > *most) else { return };
        if self.is_first("too many tools".to_owned()) {
            tracing::warn!(
                provider = %self.provider,
                "{tools} tools are offered in one request; OpenAI refuses more than {most}, so \
                 name the needed ones in `tools` of the agent"
            );
        }
    }

    fn is_first(&self, note: String) -> bool {
        let mut noted = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        noted.len() < MAX_NOTES && noted.insert(note)
    }
}

/// Returns the changes to the schema of a tool's arguments for providers of a kind, one phrase
/// each; none if the schema is sent unchanged.
pub fn schema_changes(kind: ProviderKind, schema: &Value) -> Vec<String> {
    adapt(schema, Requirements::for_kind(kind)).changes.0
}

/// A schema that a provider accepts, and the changes that were necessary.
#[derive(Debug)]
struct AdaptedSchema<'a> {
    schema: Cow<'a, Value>,
    changes: Changes,
}

/// Changes, one phrase each.
#[derive(Debug, Default)]
struct Changes(Vec<String>);

impl Changes {
    fn add(&mut self, change: String) {
        if self.0.len() < MAX_CHANGES && !self.0.contains(&change) {
            self.0.push(change);
        }
    }
}

/// Adapts a schema to the requirements of a provider. Adapting the result again changes nothing.
fn adapt<'a>(schema: &'a Value, requirements: &Requirements) -> AdaptedSchema<'a> {
    let mut changes = Changes::default();
    let mut schema = Cow::Borrowed(schema);
    for _ in 0..MAX_PASSES {
        let next = root::adapt_root(&schema, requirements, &mut changes);
        if next == *schema {
            return AdaptedSchema { schema, changes };
        }
        schema = Cow::Owned(next);
    }
    changes.add("it is too complex and replaced by one that accepts any object".to_owned());
    AdaptedSchema { schema: Cow::Owned(json!({ "type": "object", "properties": {} })), changes }
}

/// Shortens untrusted text and removes its control characters, for a log message on one line.
fn log_excerpt(text: &str, chars: usize) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(plain).take(chars).collect()
}

#[cfg(test)]
mod tests;
