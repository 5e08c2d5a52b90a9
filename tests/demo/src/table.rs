//! Tables of JSON objects for a terminal.

use serde_json::Value;

/// Maximum width of a cell, in characters, so that a row fits a terminal.
const CELL_CHARS: usize = 28;

/// Returns a table with a column for each key of the first row.
pub(crate) fn table(rows: &[Value]) -> String {
    let Some(Value::Object(first)) = rows.first() else { return "(no rows)".to_owned() };
    let keys: Vec<&String> = first.keys().collect();
    let mut lines = vec![keys.iter().map(|key| (*key).clone()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| keys.iter().map(|key| cell(&row[key.as_str()])).collect()));
    let widths: Vec<usize> = (0..keys.len())
        .map(|column| lines.iter().map(|line| width(&line[column])).max().unwrap_or(0))
        .collect();
    let pad = |line: &Vec<String>| -> String {
        let cells = line.iter().zip(&widths);
        cells
            .map(|(text, wide)| format!("{text}{}", " ".repeat(wide - width(text))))
            .collect::<Vec<_>>()
            .join("  ")
    };
    lines.iter().map(|line| format!("  {}", pad(line).trim_end())).collect::<Vec<_>>().join("\n")
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.chars().count() <= CELL_CHARS {
        return text;
    }
    text.chars().take(CELL_CHARS - 1).chain(['…']).collect()
}

/// Returns the width of a text in columns of a terminal. Chinese characters take two.
fn width(text: &str) -> usize {
    text.chars().map(|c| if c as u32 >= 0x2E80 { 2 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::table;

    #[test]
    fn columns_align_with_wide_characters() {
        let rows = [json!({ "name": "腾讯", "n": 1 }), json!({ "name": "abc", "n": null })];
        assert_eq!(table(&rows), "  name  n\n  腾讯  1\n  abc   -");
    }
}
