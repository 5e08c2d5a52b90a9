//! Tools that exercise clients: outputs, errors, changes of the list, and oversized values.

use serde_json::{Value, json};

use super::tools::{McpAnswer, McpTool, McpTools};

/// The tool set `probe`.
#[derive(Debug)]
pub(super) struct Probe;

impl McpTools for Probe {
    fn list(&self) -> Vec<McpTool> {
        let text = json!({ "text": { "type": "string" } });
        vec![
            McpTool::reading("echo", "Says the same.", &text).requiring(&["text"]),
            McpTool::reading("fail", "Fails and says so.", &json!({})),
            McpTool::reading("refuse", "Refuses its arguments.", &json!({})),
            McpTool::reading("picture", "Shows a picture.", &json!({})),
            McpTool::reading(
                "huge",
                "Answers with so many bytes.",
                &json!({ "bytes": { "type": "integer" } }),
            ),
            McpTool {
                read_only: false,
                ..McpTool::reading("announce", "Says that the tools have changed.", &json!({}))
            },
            McpTool::reading("surroundings", "Shows folder and environment.", &json!({})),
            // No client may offer these two to a model unchanged.
            McpTool::reading("bad name\u{7}", "Has a name that cannot be used.", &json!({})),
            McpTool::reading("long", &format!("\u{1b}[2J{}", "x".repeat(10_000)), &json!({})),
        ]
    }

    fn call(&self, name: &str, arguments: &Value) -> McpAnswer {
        match name {
            "echo" => match arguments["text"].as_str() {
                Some(text) => McpAnswer::Data(json!({ "text": text })),
                None => McpAnswer::Refused(-32602, "`text` is missing".to_owned()),
            },
            "fail" => McpAnswer::Failed("the probe failed".to_owned()),
            "refuse" => McpAnswer::Refused(-32602, "not these\narguments".to_owned()),
            "picture" => McpAnswer::Content(vec![
                json!({ "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" }),
                json!({ "type": "text", "text": "a greeting" }),
            ]),
            "huge" => {
                let bytes = arguments["bytes"].as_u64().unwrap_or(0) as usize;
                McpAnswer::Content(vec![json!({ "type": "text", "text": "x".repeat(bytes) })])
            }
            "announce" => McpAnswer::Changed("there are new tools".to_owned()),
            _ => McpAnswer::Data(surroundings()),
        }
    }
}

fn surroundings() -> Value {
    let env: std::collections::BTreeMap<String, String> = std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect();
    let folder = std::env::current_dir().unwrap_or_default();
    json!({ "env": env, "folder": folder })
}
