//! The knowledge base as text for prompts.

use crate::knowledge::{Column, Description, Knowledge, Table};

impl Knowledge {
    /// Returns tables with their fields, foreign keys and metrics, one per line.
    pub(crate) fn prompt(&self) -> String {
        let mut lines: Vec<String> = self.tables.iter().flat_map(table).collect();
        lines.extend(self.links.iter().map(|link| format!("关联：{} = {}", link.from, link.to)));
        lines.extend(self.metrics.iter().map(|(name, how)| format!("指标：{name} = {how}")));
        lines.join("\n")
    }
}

fn table(table: &Table) -> Vec<String> {
    let mut lines = vec![format!("表 {}{}", table.name, words(&table.description))];
    lines.extend(table.columns.iter().map(|column| field(&table.name, column)));
    lines
}

fn field(table: &str, column: &Column) -> String {
    format!("  - {table}.{} {}{}", column.name, column.kind, words(&column.description))
}

fn words(description: &Description) -> String {
    let mut text = String::new();
    if !description.description.is_empty() {
        text.push_str(&format!("：{}", description.description));
    }
    if !description.aliases.is_empty() {
        text.push_str(&format!("（又称：{}）", description.aliases.join("、")));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::testing::knowledge;

    #[test]
    fn every_field_has_a_line() {
        let text = knowledge().prompt();
        assert!(text.starts_with("表 customers\n  - customers.id INTEGER\n"), "{text}");
        assert!(text.ends_with("关联：orders.customer_id = customers.id"), "{text}");
        assert_eq!(text.lines().count(), 3 + 13 + 1);
    }
}
