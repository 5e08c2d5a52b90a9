//! A random change of one part of a tool list or a result keeps the other parts. A change of a
//! field beside the parts keeps all parts.

use proptest::prelude::*;
use serde_json::{Value, json};
use wattle_graph::llm::Part;
use wattle_graph::tool::ToolOutput;
use wattle_kit::oddity::{change_one, wire};
use wattle_mcp::parse;
use wattle_run::ports::sandbox::ToolInfo;

use crate::support::NAME;

/// Output limit, in bytes. No result in these tests reaches the limit.
const OUTPUT_BYTES: usize = 1 << 20;

/// The number of tools of a list.
const TOOLS: usize = 4;

/// The number of content blocks of a result.
const BLOCKS: usize = 6;

fn tool(number: usize) -> Value {
    json!({
        "name": format!("tool{number}"),
        "title": "A tool",
        "description": "Does it.",
        "inputSchema": { "type": "object", "properties": { "a": { "type": "number" } } },
        "outputSchema": { "type": "object" },
        "annotations": { "readOnlyHint": true, "title": "Tool" },
        "icons": [{ "src": "https://a.example/i.png", "sizes": ["48x48"] }],
        "execution": { "taskSupport": "forbidden" },
        "_meta": { "x": 1 },
    })
}

fn block(number: usize) -> Value {
    let annotations = json!({ "audience": ["user"], "priority": 0.5 });
    let text = format!("block {number}");
    match number % 3 {
        0 => json!({ "type": "text", "text": text, "annotations": annotations, "_meta": {} }),
        1 => json!({ "type": "resource", "annotations": annotations,
            "resource": { "uri": "file:///a", "mimeType": "text/plain", "text": text } }),
        _ => json!({ "type": "resource_link", "uri": "file:///b", "name": text, "size": 3 }),
    }
}

fn tool_list() -> Value {
    let tools: Vec<Value> = (0..TOOLS).map(tool).collect();
    json!({ "resultType": "complete", "tools": tools, "nextCursor": "2", "ttlMs": 60_000,
        "cacheScope": "private", "_meta": { "x": 1 } })
}

fn call_result() -> Value {
    let content: Vec<Value> = (0..BLOCKS).map(block).collect();
    json!({ "resultType": "complete", "content": content, "isError": true, "_meta": { "x": 1 },
        "structuredContent": { "total": "twelve", "items": [1, 2.5] } })
}

fn read_tools(list: &Value) -> Vec<ToolInfo> {
    parse::tools(NAME, wire(list).as_bytes()).unwrap()
}

fn read_result(result: &Value) -> ToolOutput {
    parse::output(NAME, wire(result).as_bytes(), OUTPUT_BYTES).unwrap().unwrap()
}

/// Returns the texts of an output.
fn texts(output: &ToolOutput) -> Vec<&str> {
    let texts = output.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

proptest! {
    #[test]
    fn changing_one_tool_keeps_the_other_tools(
        number in 0..TOOLS,
        (place, variant) in any::<(usize, usize)>(),
        (doubled, swapped) in any::<(bool, bool)>(),
    ) {
        let whole = read_tools(&tool_list());
        prop_assert_eq!(whole.len(), TOOLS);
        let mut tools: Vec<Value> = (0..TOOLS).map(tool).collect();
        change_one(&mut tools[number], place, variant);
        if doubled {
            tools.push(tools[number].clone());
        }
        if swapped {
            tools.swap(number, 0);
        }
        let found = read_tools(&json!({ "tools": tools }));
        for (index, tool) in whole.iter().enumerate().filter(|(index, _)| *index != number) {
            prop_assert!(found.contains(tool), "tool {index} is lost of {found:?}");
        }
    }

    #[test]
    fn changing_a_field_of_a_tool_list_keeps_the_tools(
        (place, variant) in any::<(usize, usize)>(),
    ) {
        let whole = read_tools(&tool_list());
        let mut list = tool_list();
        let place = change_one(&mut list, place, variant);
        // An error is accepted only for a change of the list itself or of the field with the tools.
        let found = parse::tools(NAME, wire(&list).as_bytes());
        if !place.is_empty() && !place.starts_with("/tools") {
            prop_assert_eq!(found.unwrap(), whole);
        }
    }

    #[test]
    fn changing_one_content_block_keeps_the_other_blocks(
        number in 0..BLOCKS,
        (place, variant) in any::<(usize, usize)>(),
        (doubled, swapped) in any::<(bool, bool)>(),
    ) {
        let mut content: Vec<Value> = (0..BLOCKS).map(block).collect();
        change_one(&mut content[number], place, variant);
        if doubled {
            content.push(content[number].clone());
        }
        if swapped {
            content.swap(number, 0);
        }
        let output = read_result(&json!({ "content": content, "isError": false }));
        let texts = texts(&output);
        for index in (0..BLOCKS).filter(|index| *index != number) {
            let text = format!("block {index}");
            prop_assert!(texts.iter().any(|it| it.contains(&text)), "{text} is lost of {texts:?}");
        }
        prop_assert!(!output.is_error);
    }

    #[test]
    fn changing_a_field_of_a_result_keeps_its_content(
        (place, variant) in any::<(usize, usize)>(),
    ) {
        let mut result = call_result();
        let place = change_one(&mut result, place, variant);
        // An error is accepted only for a change of the result itself or of the field with the
        // blocks, and for a result that says that it is of another type.
        let found = parse::output(NAME, wire(&result).as_bytes(), OUTPUT_BYTES);
        let is_of_another_type = place == "/resultType" && found.is_err();
        if !place.is_empty() && !place.starts_with("/content") && !is_of_another_type {
            let output = found.unwrap().unwrap();
            let texts = texts(&output);
            for index in 0..BLOCKS {
                let text = format!("block {index}");
                let is_found = texts.iter().any(|it| it.contains(&text));
                prop_assert!(is_found, "{text} is lost of {texts:?}");
            }
            prop_assert!(output.is_error || place == "/isError", "{output:?}");
            if !place.starts_with("/structuredContent") {
                prop_assert_eq!(output.structured, read_result(&call_result()).structured);
            }
        }
    }
}
