//! Resolves a name to a table, a field, an output column of a projection, or a text in the wrong
//! quotes.

use sqlparser::ast::{Expr, Ident, ObjectName, Spanned as _, TableFactor};

use crate::statement::scope::relation::{Relation, lower, unfolded};
use crate::statement::scope::{Missing, ScopeVisitor, expr_address};

/// Schemas of the tables in the allowlist, as a statement may write them.
const SCHEMAS: [&str; 2] = ["main", "public"];

/// Schema of PostgreSQL's own functions.
const BUILT_IN: &str = "pg_catalog";

/// Prefix of the functions that expose PostgreSQL itself.
const CATALOG_FUNCTIONS: &str = "pg_";

/// Hidden columns of every table of SQLite.
const HIDDEN_COLUMNS: [&str; 3] = ["rowid", "oid", "_rowid_"];

impl ScopeVisitor<'_> {
    pub(super) fn is_known(&self, name: &ObjectName) -> bool {
        let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
        match parts.as_deref() {
            Some([table]) => self.is_cte(name) || self.knowledge.table(&table.value).is_some(),
            Some([schema, table]) => {
                SCHEMAS.contains(&lower(schema).as_str())
                    && self.knowledge.table(&table.value).is_some()
            }
            _ => false,
        }
    }

    fn is_cte(&self, name: &ObjectName) -> bool {
        let ctes = self.frames.last().map(|frame| &frame.ctes);
        ctes.is_some_and(|ctes| self.resolver(ctes).cte(name).is_some())
    }

    /// Returns true if a function is permitted in `FROM`. The host decides what the function may
    /// do. A function must not bypass the list of tables: on SQLite a table can be called like a
    /// function, and functions of both databases expose the database itself.
    pub(super) fn may_call(&self, name: &ObjectName) -> bool {
        let parts = name.0.iter().map(|part| part.as_ident().map(lower));
        let parts: Option<Vec<String>> = parts.collect();
        match parts.as_deref() {
            Some([function]) if self.is_sqlite => {
                unfolded(function).is_some() || self.knowledge.table(function).is_some()
            }
            Some([function]) => !function.starts_with(CATALOG_FUNCTIONS),
            Some([schema, function]) => {
                !self.is_sqlite && schema == BUILT_IN && !function.starts_with(CATALOG_FUNCTIONS)
            }
            _ => false,
        }
    }

    pub(super) fn unknown_table(&mut self, name: String) {
        let name = name.split('(').next().unwrap_or_default().to_owned();
        if !self.findings.unknown_tables.contains(&name) {
            self.findings.unknown_tables.push(name);
        }
    }

    pub(super) fn unsupported(&mut self, factor: &TableFactor) {
        let form = form(factor);
        if !self.findings.unsupported.contains(&form) {
            self.findings.unsupported.push(form);
        }
    }

    pub(super) fn qualified(&mut self, relation: &Ident, column: &Ident, expression: &Expr) {
        let wanted = lower(relation);
        let found = self.around().find(|it| it.name == wanted).map(|it| it.table.clone());
        let is_read = found.is_some();
        let table = match found {
            Some(table) => table,
            // An unknown relation is left to the database, which knows more ways to name things. A
            // wrong field of a known table is wrong in any case.
            None => self.knowledge.table(&wanted).map(|table| table.name.clone()),
        };
        let Some(table) = table else { return };
        let is_hidden = HIDDEN_COLUMNS.contains(&lower(column).as_str());
        if self.uses(&table, &column.value) || is_hidden {
            return;
        }
        let qualifier = Some(relation.to_string());
        self.miss(format!("{table}.{}", column.value), column, expression, qualifier, is_read);
    }

    /// Records a missing field. It can be replaced if it is certainly a field.
    fn miss(
        &mut self,
        name: String,
        column: &Ident,
        expression: &Expr,
        qualifier: Option<String>,
        is_sure: bool,
    ) {
        // In a cast the field gives the column its name, but no alias can follow it.
        let is_item = self.namesakes.get(&expr_address(expression)).copied();
        let tables = if is_sure && is_item != Some(false) { self.tables() } else { Vec::new() };
        self.findings.missing.push(Missing {
            name,
            span: expression.span(),
            qualifier,
            item: is_item.map(|_| column.clone()),
            tables,
        });
    }

    pub(super) fn bare(&mut self, name: &Ident, expression: &Expr) {
        let wanted = lower(name);
        let is_quoted = name.quote_style == Some('"') && !self.names.contains(&name.value);
        let may_be_text = is_quoted && self.is_sqlite;
        let is_value = may_be_text && self.values.contains(&expr_address(expression));
        let is_output = !is_value && self.is_output(&wanted, may_be_text);
        if is_output || self.is_hidden(&wanted, may_be_text) {
            return;
        }
        let mut tables: Vec<String> = self.around().filter_map(|it| it.table.clone()).collect();
        if tables.iter().any(|table| self.uses(table, &wanted)) {
            return;
        }
        // A CTE or a subquery may have the column, or the name is a whole row.
        let may_be = |it: &Relation| match it.table {
            None if may_be_text => it.may_have(&wanted),
            None => true,
            Some(_) => !may_be_text && it.name == wanted,
        };
        if self.around().any(may_be) {
            return;
        }
        if is_quoted {
            let is_early = may_be_text && !is_value && self.is_output(&wanted, false);
            let found = if is_early { &mut self.findings.early } else { &mut self.findings.quoted };
            if !found.contains(&name.value) {
                found.push(name.value.clone());
            }
            return;
        }
        tables.sort();
        tables.dedup();
        let missing = match tables.as_slice() {
            [] => return,
            [table] => format!("{table}.{}", name.value),
            _ => name.value.clone(),
        };
        self.miss(missing, name, expression, None, name.quote_style.is_none());
    }

    /// Returns true if a projection defines the name. SQLite does not know the output columns
    /// before the end of the projection: it interprets a name in double quotes there as a text.
    fn is_output(&self, name: &str, may_be_text: bool) -> bool {
        if may_be_text {
            return self.output(name).is_some();
        }
        self.reachable().any(|scope| scope.outputs.contains_key(name))
    }

    /// Returns true if an output column is certainly a number; `None` if SQLite does not know the
    /// column at the current position.
    pub(super) fn output(&self, name: &str) -> Option<bool> {
        if self.open_windows > 0 {
            return None;
        }
        let mut known = self.reachable().filter(|scope| scope.knows_outputs);
        known.find_map(|scope| scope.outputs.get(name).copied())
    }

    /// Returns true if the name is a hidden column, such as `rowid`. CTEs and subqueries have no
    /// hidden columns, so a name that SQLite may interpret as a text (`may_be_text`) is a hidden
    /// column only if a table is visible.
    fn is_hidden(&self, name: &str, may_be_text: bool) -> bool {
        HIDDEN_COLUMNS.contains(&name)
            && (!may_be_text || self.around().any(|it| it.table.is_some()))
    }

    /// Records a field. Returns false if the table does not have it.
    fn uses(&mut self, table: &str, column: &str) -> bool {
        let Some(table) = self.knowledge.table(table) else { return false };
        let Some(column) = table.column(column) else { return false };
        let field = format!("{}.{}", table.name, column.name);
        if !self.findings.fields.contains(&field) {
            self.findings.fields.push(field);
        }
        true
    }

    /// Returns the visible tables, with their names.
    fn tables(&self) -> Vec<(String, String)> {
        let tables = self.around().filter_map(|it| Some((it.table.clone()?, it.written.clone())));
        tables.collect()
    }
}

/// Returns the name of a form of `FROM` that no supported database has, or that the host refuses.
fn form(factor: &TableFactor) -> &'static str {
    match factor {
        TableFactor::JsonTable { .. } => "JSON_TABLE",
        TableFactor::OpenJsonTable { .. } => "OPENJSON",
        TableFactor::XmlTable { .. } => "XMLTABLE",
        TableFactor::TableFunction { .. } => "TABLE()",
        TableFactor::Pivot { .. } => "PIVOT",
        TableFactor::Unpivot { .. } | TableFactor::UnpivotExpr { .. } => "UNPIVOT",
        TableFactor::MatchRecognize { .. } => "MATCH_RECOGNIZE",
        _ => "SEMANTIC_VIEW",
    }
}
