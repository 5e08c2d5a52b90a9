//! Properties: a random change of one part of a tool list or a result keeps the other parts.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use wattle_graph::llm::Part;
use wattle_kit::oddity::{change, others, places};
use wattle_mcp::parse;

use crate::support::NAME;

/// Output limit, in bytes. No result in these tests reaches the limit.
const OUTPUT_BYTES: usize = 1 << 20;

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

fn changed(mut part: Value, place: Index, other: Option<Value>) -> Value {
    let places: Vec<String> = places(&part);
    change(&mut part, place.get::<String>(&places), other);
    part
}

proptest! {
    #[test]
    fn changing_one_tool_keeps_the_other_tools(
        number in 0_usize..4,
        place in any::<Index>(),
        other in prop::sample::select(others()),
        doubled in any::<bool>(),
    ) {
        let read = |tools: Vec<Value>| {
            let list = json!({ "tools": tools }).to_string();
            parse::tools(NAME, list.as_bytes()).unwrap()
        };
        let whole = read((0..4).map(tool).collect());
        let mut tools: Vec<Value> = (0..4).map(tool).collect();
        tools[number] = changed(tools[number].clone(), place, other);
        if doubled {
            tools.push(tools[number].clone());
        }
        let found = read(tools);
        for (index, tool) in whole.iter().enumerate().filter(|(index, _)| *index != number) {
            prop_assert!(found.contains(tool), "tool {index} is lost of {found:?}");
        }
    }

    #[test]
    fn changing_one_content_block_keeps_the_other_blocks(
        number in 0_usize..6,
        place in any::<Index>(),
        other in prop::sample::select(others()),
    ) {
        let mut content: Vec<Value> = (0..6).map(block).collect();
        content[number] = changed(content[number].clone(), place, other);
        let result = json!({ "content": content, "isError": false }).to_string();
        let output = parse::output(NAME, result.as_bytes(), OUTPUT_BYTES).unwrap().unwrap();
        let texts: Vec<&str> = output
            .content
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        for index in (0..6).filter(|index| *index != number) {
            let text = format!("block {index}");
            prop_assert!(texts.iter().any(|it| it.contains(&text)), "{text} is lost of {texts:?}");
        }
    }
}
