//! Log messages about the tools of a request.

use wattle_kit::log::Log;

use super::*;

#[test]
fn changes_of_each_tool_are_logged_once() {
    let schemas = SchemaAdapter::new("first", ProviderKind::Openai);
    let tool = |name: &str, arguments_schema: Value| ToolDefinition {
        name: name.into(),
        description: String::new(),
        arguments_schema,
    };
    let fine = tool("fine", json!({ "type": "object", "properties": {} }));
    let mut tools = vec![tool("odd", json!({ "type": "object" })), fine.clone()];
    let write = |tool: &ToolDefinition, schema: &Value| json!([tool.name, schema]);
    for _ in 0..3 {
        let sent = schemas.write_tools(&tools, write);
        assert_eq!(sent, json!([["odd", fine.arguments_schema], ["fine", fine.arguments_schema]]));
    }
    assert_eq!(schemas.logged.lock().unwrap().len(), 1);
    tools.resize(129, fine);
    schemas.write_tools(&tools, write);
    assert_eq!(schemas.logged.lock().unwrap().len(), 2);
}

#[test]
fn too_many_tools_are_logged_with_a_hint() {
    let (log, _guard) = Log::start();
    let fine = ToolDefinition {
        name: "fine".into(),
        description: String::new(),
        arguments_schema: json!({ "type": "object", "properties": {} }),
    };
    let tools = vec![fine; 150];
    for kind in [ProviderKind::Openai, ProviderKind::Gemini, ProviderKind::Anthropic] {
        SchemaAdapter::new("first", kind).write_tools(&tools, |tool, _| json!(tool.name));
    }
    let note = "WARN message=150 tools are offered in one request; OpenAI refuses more than 128, so \
                name the needed ones in `tools` of the agent provider=first";
    assert_eq!(log.lines(), [note]);
}
