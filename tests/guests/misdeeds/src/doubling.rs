//! A tool whose arguments schema is small and expands without bounds, and a node that calls it.

use std::borrow::Cow;

use schemars::{Schema, SchemaGenerator};
use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, ToolContext, ToolOutput, json, node,
    tool, tools,
};

/// Number of levels of definitions, each of which refers to the next level twice.
const LEVELS: u32 = 30;

/// Arguments of `doubled`. Their schema accepts any object, and expands to `2^LEVELS` schemas.
#[derive(Debug, Deserialize)]
pub(crate) struct Doubled {}

impl JsonSchema for Doubled {
    fn schema_name() -> Cow<'static, str> {
        "Doubled".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let mut definitions = json!({ "d0": { "type": "object" } });
        for level in 1..=LEVELS {
            let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            definitions[format!("d{level}")] = json!({ "allOf": [below, below] });
        }
        let reference = format!("#/$defs/d{LEVELS}");
        schemars::json_schema!({ "type": "object", "$defs": definitions, "$ref": reference })
    }
}

/// Has a schema that expands without bounds.
#[tool(read_only)]
pub(crate) fn doubled(_context: &ToolContext, _args: Doubled) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text("called"))
}

/// Input of `use_tool`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Named {
    /// The name or the reference of the tool.
    pub(crate) tool: String,
}

/// Output of `use_tool`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Used {
    /// The text of the tool's output.
    pub(crate) text: String,
}

/// Calls `tool` without arguments. Its failure is the failure of the node.
#[node]
pub(crate) fn use_tool(_context: &Context, input: Named) -> Result<Used, Failure> {
    let output = tools::Call::new(input.tool, json!({})).call()?;
    Ok(Used { text: output.text_content() })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Context, ToolOutput, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{doubled, use_tool};

    #[test]
    fn each_definition_applies_the_one_below_twice() {
        let schema = testing::tool_schema::<doubled>();
        assert_eq!(schema["$ref"], "#/$defs/d30");
        let below = json!({ "$ref": "#/$defs/d29" });
        assert_eq!(schema["$defs"]["d30"], json!({ "allOf": [below, below] }));
        assert_eq!(schema["$defs"]["d0"], json!({ "type": "object" }));
    }

    #[test]
    fn a_node_calls_a_tool() {
        let host = FakeHost::new().tool("good", |_| Ok(ToolOutput::text("well")));
        let input = json!({ "tool": "good" });
        let decision =
            host.run(|| testing::run_node::<use_tool>(&Context::default(), &input)).unwrap();
        assert_eq!(decision.update("text"), Some(&json!("well")));
    }
}
