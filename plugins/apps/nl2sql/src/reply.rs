//! The text that the user reads: predefined texts, and the table of the first rows.

use crate::rows::{cut, shown};
use crate::state::{FinalStatus, ReasonCode, Row};

/// Maximum number of rows in the text. The CSV file has all rows.
pub(crate) const SHOWN_ROWS: usize = 10;

/// Maximum number of characters of a cell.
const CELL_CHARACTERS: usize = 60;

/// Returns the predefined text for an answer without a model's summary.
pub(crate) fn canned(status: FinalStatus, reason: Option<ReasonCode>, rows: usize) -> String {
    match (reason, status) {
        (Some(ReasonCode::IntentIsChat), _) => {
            "当前问题被识别为闲聊，已跳过数据查询流程。".to_owned()
        }
        (Some(ReasonCode::TaskParseMissing), _) => {
            "未能解析出可执行的查询任务，请换一种说法再试。".to_owned()
        }
        (Some(ReasonCode::SqlValidateMissing), _) => "查询没有执行，请稍后再试。".to_owned(),
        (Some(ReasonCode::EmptyResultAfterRetry), _) => {
            "查询执行成功，但没有符合条件的数据。请核对筛选条件或时间范围。".to_owned()
        }
        (Some(ReasonCode::ZeroMetricAfterRetry), _) => {
            "查询执行成功，统计结果为 0。请核对筛选条件或时间范围。".to_owned()
        }
        (Some(ReasonCode::SqlInvalidAfterRetry), _) | (None, FinalStatus::Failed) => {
            "多次尝试后仍未能生成可执行的查询，请换一种说法或补充条件。".to_owned()
        }
        (None, _) => format!("查询执行成功，已返回结果，共{rows}行。"),
    }
}

/// Returns the summary, followed by a table of the first rows.
pub(crate) fn assistant(summary: &str, rows: &[Row], download_url: Option<&str>) -> String {
    let Some(first) = rows.first() else { return summary.to_owned() };
    let names: Vec<&String> = first.keys().collect();
    let head = names.iter().map(|name| cell(name)).collect::<Vec<_>>().join(" | ");
    let rule = vec!["---"; names.len()].join(" | ");
    let mut lines =
        vec![summary.to_owned(), String::new(), format!("| {head} |"), format!("| {rule} |")];
    for row in rows.iter().take(SHOWN_ROWS) {
        let cells = names.iter().map(|name| row.get(*name).map(shown).unwrap_or_default());
        let cells = cells.map(|text| cell(&text)).collect::<Vec<_>>().join(" | ");
        lines.push(format!("| {cells} |"));
    }
    if let Some(url) = download_url {
        let count = rows.len();
        lines.push(String::new());
        lines.push(format!("共 {count} 行，以上为前 {SHOWN_ROWS} 行，完整结果：[下载 CSV]({url})"));
    }
    lines.join("\n")
}

fn cell(text: &str) -> String {
    cut(&text.replace('|', "\\|").replace(['\n', '\r'], " "), CELL_CHARACTERS)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{assistant, canned};
    use crate::state::{FinalStatus, ReasonCode, Row};

    #[test]
    fn rows_become_a_table() {
        let rows: Vec<Row> =
            serde_json::from_value(json!([{"name": "a|b", "n": 1}, {"name": null, "n": 2}]))
                .unwrap();
        let expected = "共2行。\n\n| name | n |\n| --- | --- |\n| a\\|b | 1 |\n|  | 2 |";
        assert_eq!(assistant("共2行。", &rows, None), expected);
        assert_eq!(assistant("没有。", &[], None), "没有。");
    }

    #[test]
    fn only_the_first_rows_are_shown() {
        let rows: Vec<Row> =
            (0..12).map(|n| Row::from_iter([("n".to_owned(), n.into())])).collect();
        let text = assistant("x", &rows, Some("/api/chat/downloads/a.csv"));
        assert!(text.contains("| 9 |") && !text.contains("| 10 |"), "{text}");
        assert!(text.contains("共 12 行") && text.contains("(/api/chat/downloads/a.csv)"));
    }

    #[test]
    fn every_outcome_has_a_text() {
        let expected = "当前问题被识别为闲聊，已跳过数据查询流程。";
        assert_eq!(canned(FinalStatus::Success, Some(ReasonCode::IntentIsChat), 0), expected);
        assert_eq!(canned(FinalStatus::Success, None, 3), "查询执行成功，已返回结果，共3行。");
    }
}
