//! Writes a result as CSV for spreadsheets: UTF-8 with a byte order mark, CR LF, and no cell that a
//! spreadsheet would interpret as a formula.

use wattle_plugin::prelude::Value;

use crate::rows::shown;
use crate::state::Row;

/// Byte order mark. Without it, spreadsheets guess another encoding.
const MARK: &str = "\u{feff}";

/// Characters that begin a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Writes all rows. The columns are those of the first row.
pub(crate) fn write(rows: &[Row], guard: bool) -> String {
    let mut text = MARK.to_owned();
    let Some(first) = rows.first() else { return text };
    let names: Vec<&String> = first.keys().collect();
    line(&mut text, names.iter().map(|name| guarded((*name).clone(), guard)));
    for row in rows {
        line(&mut text, names.iter().map(|name| cell(row.get(*name), guard)));
    }
    text
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(quoted).collect();
    text.push_str(&cells.join(","));
    text.push_str("\r\n");
}

fn cell(value: Option<&Value>, guard: bool) -> String {
    match value {
        None => String::new(),
        // A number is not a formula, whatever its sign.
        Some(Value::String(text)) if text.parse::<f64>().is_err() => guarded(text.clone(), guard),
        Some(value) => shown(value),
    }
}

fn guarded(text: String, guard: bool) -> String {
    if guard && text.starts_with(FORMULA) { format!("'{text}") } else { text }
}

fn quoted(cell: String) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::write;
    use crate::state::Row;

    fn rows(value: Value) -> Vec<Row> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn cells_with_separators_are_quoted() {
        let rows = rows(json!([
            {"名称": "甲,乙", "n": 1.5, "空": null},
            {"名称": "说\"好\"", "n": -2, "空": true},
        ]));
        let expected = "\u{feff}名称,n,空\r\n\"甲,乙\",1.5,\r\n\"说\"\"好\"\"\",-2,true\r\n";
        assert_eq!(write(&rows, true), expected);
        assert_eq!(write(&[], true), "\u{feff}");
    }

    #[test]
    fn formulas_are_escaped() {
        let rows = rows(json!([{"a": "=1+1", "b": "@x", "c": "-12.5", "d": "-x", "e": "\t=1"}]));
        assert_eq!(write(&rows, true), "\u{feff}a,b,c,d,e\r\n'=1+1,'@x,-12.5,'-x,'\t=1\r\n");
        assert_eq!(write(&rows, false), "\u{feff}a,b,c,d,e\r\n=1+1,@x,-12.5,-x,\t=1\r\n");
    }
}
