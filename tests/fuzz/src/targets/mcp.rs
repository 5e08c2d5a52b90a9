//! Responses of an MCP server, as a tool list and as a tool result. Names and descriptions are
//! clean, and lists and results stay within their limits.

use wattle_graph::llm::Part;
use wattle_mcp::parse;
use wattle_run::ports::sandbox::ToolInfo;

/// Maximum size of a tool result, in bytes.
const OUTPUT_BYTES: usize = 2_000;

/// Maximum number of tools of a server.
const TOOLS: usize = 1_000;

/// Maximum sizes of names and descriptions of tools.
const NAME_BYTES: usize = 128;
const DESCRIPTION_BYTES: usize = 4_096;

/// Parses a response.
pub fn run(bytes: &[u8]) {
    clean(&parse::tools("server", bytes).unwrap_or_default());
    let Ok(Ok(output)) = parse::output("server", bytes, OUTPUT_BYTES) else { return };
    let text = |part: &Part| match part {
        Part::Text(text) => text.len(),
        part => panic!("only text is allowed: {part:?}"),
    };
    let size: usize = output.content.iter().map(text).sum();
    assert!(size <= OUTPUT_BYTES, "{size} bytes");
}

/// Checks that the tools of a server are clean, and that their number is limited.
pub(super) fn clean(tools: &[ToolInfo]) {
    assert!(tools.len() <= TOOLS, "{} tools", tools.len());
    for tool in tools {
        let unfit = |char: char| char.is_control() || char.is_whitespace();
        assert!(!tool.name.is_empty() && tool.name.len() <= NAME_BYTES);
        assert!(!tool.name.contains(unfit), "{:?}", tool.name);
        assert!(tool.description.len() <= DESCRIPTION_BYTES);
        let unfit = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
        assert!(!tool.description.contains(unfit), "{:?}", tool.description);
        assert!(tool.arguments_schema.is_object());
    }
}
