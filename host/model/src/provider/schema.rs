//! Schemas of tools in the form that each provider demands.
//!
//! They come from plugins and MCP servers, in every draft and with every slip. A provider checks those of all tools
//! of a request, and refuses the whole request for one that it does not like, whichever tool is meant. So they are
//! brought into its form where the request is written.
//!
//! What fitted the schema of the tool fits the one that is sent: it becomes wider, never narrower. There are two
//! exceptions. If only some kinds of a union at the top describe a property, their description holds for all. If a schema
//! without a type has keywords of objects or lists, Gemini is sent that type. The host or the MCP server checks
//! arguments against the original. A schema that is fine stays as it is.
//!
//! # Layout
//!
//! * this page: what each provider demands ([`Demands`]), and what is logged ([`Schemas`]); `known`: schemas that were
//!   made good before.
//! * `top`: one pass over a schema, and the form of its top; `fold`: merges a union of objects into one object.
//! * `walk`: keyword by keyword; `rule`: what keywords mean to each other.
//! * `reference`: `$ref` and `$defs`; `pattern`: regular expressions.

mod fold;
mod known;
mod pattern;
mod reference;
mod rule;
mod top;
mod walk;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use wattle_graph::llm::ToolDefinition;

use crate::config::ProviderKind;
use crate::provider::schema::known::Known;
use crate::provider::schema::pattern::Form;
use crate::structured::strict;

/// Passes over one schema: what one changes may need another. Two are enough for nearly all.
const PASSES: usize = 8;

/// Changes of one schema that a note lists.
const CHANGES: usize = 12;

/// Notes about one provider that are remembered. Later ones are not written at all, so that a server that makes up a
/// schema each time does not fill the log.
const MAX_NOTES: usize = 1000;

/// Characters of the name of a tool in a note.
const NAME_CHARS: usize = 128;

/// What a provider demands of the schema of a tool's arguments, beside these demands of all: the top is an object
/// with `type` and `properties`, and no union.
///
/// # Sources
///
/// The documentation ("Function calling" of OpenAI, "Tool use" of Anthropic, `FunctionDeclaration` of the Gemini API)
/// says "JSON Schema" and little more. The rest is from what the services answer, as users report it:
///
/// * OpenAI: "object schema missing properties" (openai/openai-agents-python issue 449); "schema must have type
///   'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (chatanywhere/GPT_API_free issue
///   403).
/// * Anthropic: "input_schema does not support oneOf, allOf, or anyOf at the top level" (anthropics/claude-code issue
///   5319); "It must match JSON Schema draft 2020-12" (openclaw/openclaw issue 98588, which lists what is taken).
/// * Gemini: "value for properties at top-level must be an object" (cbdb-project/cbdb-online-main-server pull request
///   879). What `parametersJsonSchema` takes is documented at `responseJsonSchema` of `GenerationConfig`.
#[derive(Debug)]
struct Demands {
    /// Keywords that may not stand at the top.
    refused_at_top: &'static [&'static str],
    /// A list has `items`. Sources: "array schema missing items" of OpenAI (sigoden/aichat pull request 1049), "items:
    /// missing field" of Gemini (NousResearch/hermes-agent issue 71804).
    wants_items: bool,
    /// Names of properties at the top have 1 to 64 of `[a-zA-Z0-9_.-]`. Source: "Property keys should match pattern"
    /// of Anthropic, which checks the top only
    /// (aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws issue 709).
    wants_plain_keys: bool,
    /// The only values of `format`, if there are such. OpenAI checks them where it decodes strictly, and some
    /// services behind its format always do: "'uri' is not a valid format" (1jehuang/jcode issue 543). Gemini takes
    /// any: `Schema` in the reference of its API.
    formats: Option<&'static [&'static str]>,
    /// Patterns that it may not know are left out, see `pattern`. Anthropic takes look-around (tombii/better-ccflare
    /// issue 357). Google's Vertex refuses `\p{L}` (langfuse/langfuse issue 14770).
    patterns: Form,
    /// References may lead to `definitions`, as before draft 2019-09.
    knows_definitions: bool,
    /// The only keywords beside a reference, if there are such. Source: "If a schema node has Schema.ref set, then only
    /// description and default can be set alongside it" of Gemini (diegosouzapw/OmniRoute issue 461).
    beside_reference: Option<&'static [&'static str]>,
    /// A definition may need itself only by way of properties that are not required. Sources: `responseJsonSchema` of
    /// the Gemini API; "a ref loop of required fields was found" (juspay/juspay-mcp pull request 132).
    ends_loops: bool,
    /// `enum` has texts only or numbers only, and there is no `const`. Source: `responseJsonSchema` of the Gemini API.
    wants_plain_enums: bool,
    /// Keywords of objects and lists stand beside their own type only, and what is required is described. Sources:
    /// "only allowed for OBJECT type" (anomalyco/opencode pull request 11888) and "property is not defined"
    /// (probelabs/probe issue 569) of Gemini.
    ties_keywords: bool,
    /// Schemas within schemas. Source: "exceeds the maximum allowed nesting depth" of Gemini (google-gemini/gemini-cli
    /// issue 5923). It does not say how many. Messages of Google's services have 100 levels by default, of which a
    /// property takes six. For others the bound is what a schema of the host has (`limit::SCHEMA_DEPTH`).
    depth: usize,
    /// Tools of one request, if they are counted. Source: `tools` of OpenAI's chat completions.
    tools: Option<usize>,
}

/// OpenAI, and services that speak its format.
static OPENAI: Demands = Demands {
    refused_at_top: &["enum", "const", "not"],
    wants_items: true,
    wants_plain_keys: false,
    formats: Some(&strict::FORMATS),
    patterns: Form::Portable,
    knows_definitions: true,
    beside_reference: None,
    ends_loops: false,
    wants_plain_enums: false,
    ties_keywords: false,
    depth: 32,
    tools: Some(128),
};

/// Gemini, in `parametersJsonSchema`.
static GEMINI: Demands = Demands {
    refused_at_top: &["enum", "const", "not"],
    wants_items: true,
    wants_plain_keys: false,
    formats: None,
    patterns: Form::Portable,
    knows_definitions: false,
    beside_reference: Some(&["description", "default"]),
    ends_loops: true,
    wants_plain_enums: true,
    ties_keywords: true,
    depth: 15,
    tools: None,
};

/// Anthropic.
static ANTHROPIC: Demands = Demands {
    refused_at_top: &[],
    wants_items: false,
    wants_plain_keys: true,
    formats: None,
    patterns: Form::Special,
    knows_definitions: true,
    beside_reference: None,
    ends_loops: false,
    wants_plain_enums: false,
    ties_keywords: false,
    depth: 32,
    tools: None,
};

impl Demands {
    fn of(kind: ProviderKind) -> &'static Self {
        match kind {
            ProviderKind::Openai => &OPENAI,
            ProviderKind::Gemini => &GEMINI,
            ProviderKind::Anthropic => &ANTHROPIC,
        }
    }

    fn takes_pattern(&self, pattern: &str) -> bool {
        pattern::form(pattern) <= self.patterns
    }
}

/// Brings schemas of tools into the form of one provider. What is changed is logged once for each tool.
#[derive(Debug)]
pub(super) struct Schemas {
    provider: String,
    demands: &'static Demands,
    noted: Mutex<HashSet<String>>,
    known: Mutex<Known>,
}

impl Schemas {
    pub(super) fn new(provider: &str, kind: ProviderKind) -> Self {
        Self {
            provider: provider.to_owned(),
            demands: Demands::of(kind),
            noted: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The tools of a request, each of them written with a schema that the provider takes.
    pub(super) fn written(
        &self,
        tools: &[ToolDefinition],
        write: fn(&ToolDefinition, &Value) -> Value,
    ) -> Value {
        self.count(tools.len());
        let written = tools.iter().map(|tool| {
            let other = self.other(tool);
            write(tool, other.as_deref().unwrap_or(&tool.arguments_schema))
        });
        written.collect()
    }

    /// The schema that is sent for that of a tool; `None` if it stays as it is.
    fn other(&self, tool: &ToolDefinition) -> Option<Arc<Value>> {
        if let Some(known) = self.known().find(tool) {
            return known.other.clone();
        }
        let other = self.fitted(tool);
        self.known().add(tool, other.clone());
        other
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fitted(&self, tool: &ToolDefinition) -> Option<Arc<Value>> {
        let fitted = fitted(&tool.arguments_schema, self.demands);
        let changes = fitted.changes.0.join("; ");
        let name = shown(&tool.name, NAME_CHARS);
        if !changes.is_empty() && self.is_new(format!("{name}: {changes}")) {
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

    fn count(&self, tools: usize) {
        let Some(most) = self.demands.tools.filter(|most| tools > *most) else { return };
        if self.is_new("too many tools".to_owned()) {
            tracing::warn!(
                provider = %self.provider,
                "{tools} tools are offered in one request; OpenAI refuses more than {most}, so \
                 name the needed ones in `tools` of the agent"
            );
        }
    }

    fn is_new(&self, note: String) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.len() < MAX_NOTES && noted.insert(note)
    }
}

/// What is changed in the schema of a tool's arguments for providers of a kind, in short sentences; nothing if it is
/// sent as it is.
pub fn schema_changes(kind: ProviderKind, schema: &Value) -> Vec<String> {
    fitted(schema, Demands::of(kind)).changes.0
}

/// A schema that a provider takes, and what was changed for that.
#[derive(Debug)]
struct Fitted<'a> {
    schema: Cow<'a, Value>,
    changes: Changes,
}

/// Short sentences about what was changed.
#[derive(Debug, Default)]
struct Changes(Vec<String>);

impl Changes {
    fn note(&mut self, change: String) {
        if self.0.len() < CHANGES && !self.0.contains(&change) {
            self.0.push(change);
        }
    }
}

/// Brings a schema into the form that a provider demands. Doing it again changes nothing more.
fn fitted<'a>(schema: &'a Value, demands: &Demands) -> Fitted<'a> {
    let mut changes = Changes::default();
    let mut schema = Cow::Borrowed(schema);
    for _ in 0..PASSES {
        let next = top::fit(&schema, demands, &mut changes);
        if next == *schema {
            return Fitted { schema, changes };
        }
        schema = Cow::Owned(next);
    }
    changes.note("it is too odd, and left open".to_owned());
    Fitted { schema: Cow::Owned(json!({ "type": "object", "properties": {} })), changes }
}

/// Text of somebody else as part of a note: one line, no control characters, not too long.
fn shown(text: &str, chars: usize) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(plain).take(chars).collect()
}

#[cfg(test)]
mod tests;
