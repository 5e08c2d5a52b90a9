//! Checks statements of plugins with read-only access. A valid statement is one query that writes
//! nothing, takes no lock, does not wait, does not leave the database, and reads only granted
//! tables. The database also refuses writes. This check also rejects statements that a read-only
//! transaction permits, such as a query that waits.

mod catalog;
mod function;
mod nesting;
mod scope;

use std::ops::ControlFlow;

use serde_json::json;
use sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SetExpr, Statement, TableFactor, Visit as _, Visitor,
};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::SqlRule;

use crate::readonly::scope::CteScopes;
use crate::statement::Dialect;

pub(crate) use self::catalog::{RelationKind, classify_relation, is_schema_function};
pub(crate) use self::function::is_forbidden;

/// Checks that a statement only reads, and reads only what the rule permits. The tree of the
/// statement may need more stack than a thread of the runtime has, see [`crate::checker`].
///
/// # Errors
///
/// Returns `invalid` if the statement cannot be parsed, `limit` if the statement nests too deep,
/// and `denied` with the forbidden part of the statement.
pub(crate) fn check(dialect: Dialect, text: &str, rule: &SqlRule) -> Result<(), Failure> {
    let tokens = Tokenizer::new(dialect.parser(), text)
        .tokenize()
        .map_err(|error| parse_failure(dialect, &error.to_string()))?;
    reject_escaped_identifiers(&tokens)?;
    nesting::check(dialect, &tokens)?;
    let parsed = Parser::new(dialect.parser())
        .with_recursion_limit(nesting::BRACKETS)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_statements())
        .map_err(|error| match error {
            ParserError::RecursionLimitExceeded => {
                nesting::too_deep(dialect, "nested expressions", nesting::BRACKETS)
            }
            error => parse_failure(dialect, &error.to_string()),
        })?;
    let [Statement::Query(query)] = parsed.as_slice() else {
        return Err(Refusal::writes("one-query", "it is not one query").into());
    };
    let mut visit = ReadOnlyVisitor { dialect, rule, scopes: CteScopes::default() };
    match query.visit(&mut visit) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refusal) => Err(refusal.into()),
    }
}

fn parse_failure(dialect: Dialect, reason: &str) -> Failure {
    Failure::new(code::INVALID, format!("cannot parse the SQL query: {reason}"))
        .with_details(json!({ "dialect": dialect.name(), "rule": "syntax" }))
}

/// Rejects identifiers with escapes (`U&"..."`), which the database decodes and this parser does
/// not.
fn reject_escaped_identifiers(tokens: &[Token]) -> Result<(), Failure> {
    let is_escape = |window: &[Token]| {
        let [Token::Word(prefix), Token::Ampersand, Token::Word(name)] = window else {
            return false;
        };
        prefix.quote_style.is_none()
            && prefix.value.eq_ignore_ascii_case("u")
            && name.quote_style.is_some()
    };
    if tokens.windows(3).any(is_escape) {
        let refusal = Refusal {
            rule: "unicode-escape",
            subject: "U&\"...\"".to_owned(),
            reason: "identifiers with escapes are not available; write the name itself".to_owned(),
            is_write: false,
        };
        return Err(refusal.into());
    }
    Ok(())
}

/// Why a query is rejected.
struct Refusal {
    /// Stable name of the violated rule.
    rule: &'static str,
    /// The table, function or clause.
    subject: String,
    reason: String,
    /// Whether a grant with write access would permit the query.
    is_write: bool,
}

impl Refusal {
    fn writes(rule: &'static str, reason: &str) -> Self {
        Self { rule, subject: String::new(), reason: reason.to_owned(), is_write: true }
    }

    fn new(rule: &'static str, subject: &str, reason: String) -> Self {
        Self { rule, subject: subject.to_owned(), reason, is_write: false }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Refusal { rule, subject, reason, is_write } = refusal;
        let message = if is_write {
            format!(
                "this plugin has read-only access, and the SQL statement does more: {reason}; \
                 if the plugin should write, grant `access = \"read-write\"` for the database in \
                 wattle.toml"
            )
        } else {
            format!("the SQL query is refused: {reason}")
        };
        Self::new(code::DENIED, message).with_details(json!({ "rule": rule, "subject": subject }))
    }
}

struct ReadOnlyVisitor<'r> {
    dialect: Dialect,
    rule: &'r SqlRule,
    scopes: CteScopes,
}

impl Visitor for ReadOnlyVisitor<'_> {
    type Break = Refusal;

    fn pre_visit_statement(&mut self, _statement: &Statement) -> ControlFlow<Refusal> {
        ControlFlow::Break(Refusal::writes("write", "it contains a statement that is not a query"))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Refusal> {
        if !query.locks.is_empty() {
            let reason = "`FOR UPDATE` and `FOR SHARE` lock rows";
            return ControlFlow::Break(Refusal::writes("lock", reason));
        }
        let is_foreign = query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty();
        if is_foreign {
            let reason = "it uses clauses of another database".to_owned();
            return ControlFlow::Break(Refusal::new("clause", "", reason));
        }
        self.scopes.enter(self.dialect, query);
        Self::check_arms(&query.body)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Refusal> {
        self.scopes.leave(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Refusal> {
        if select.into.is_some() {
            return ControlFlow::Break(Refusal::writes("into", "`SELECT INTO` creates a table"));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Refusal> {
        match expression {
            Expr::Function(function) => self.check_function(&function.name, false),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Refusal> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.check_function(name, true)
            }
            TableFactor::Table { name, args: None, .. } => {
                let parts: Option<Vec<&Ident>> = name.0.iter().map(|it| it.as_ident()).collect();
                self.check_relation(&parts.unwrap_or_default())
            }
            TableFactor::Derived { .. }
            | TableFactor::TableFunction { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => {
                let reason = "it reads from something that is neither table nor query".to_owned();
                ControlFlow::Break(Refusal::new("clause", "", reason))
            }
        }
    }
}

impl ReadOnlyVisitor<'_> {
    /// Checks the operands of set operations such as `UNION`. Queries inside of the operands are
    /// visited separately.
    fn check_arms(body: &SetExpr) -> ControlFlow<Refusal> {
        let mut arms = vec![body];
        while let Some(arm) = arms.pop() {
            match arm {
                SetExpr::SetOperation { left, right, .. } => arms.extend([&**left, &**right]),
                SetExpr::Insert(_)
                | SetExpr::Update(_)
                | SetExpr::Delete(_)
                | SetExpr::Merge(_) => {
                    let reason = "a `WITH` part of it changes rows";
                    return ControlFlow::Break(Refusal::writes("write", reason));
                }
                // The parser does not report whether the name in `TABLE x` was quoted.
                SetExpr::Table(_) => {
                    let reason = "`TABLE x` is not available; write `SELECT * FROM x`".to_owned();
                    return ControlFlow::Break(Refusal::new("clause", "TABLE", reason));
                }
                SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn check_relation(&self, parts: &[&Ident]) -> ControlFlow<Refusal> {
        if let [name] = parts
            && self.scopes.is_cte(&self.dialect.fold_identifier(name))
        {
            return ControlFlow::Continue(());
        }
        let names: Vec<String> =
            parts.iter().map(|part| self.dialect.fold_identifier(part)).collect();
        let shown = names.join(".");
        let refuse = |rule, reason| ControlFlow::Break(Refusal::new(rule, &shown, reason));
        match classify_relation(self.dialect, &names) {
            RelationKind::Table(table) => match &self.rule.tables {
                Some(tables) if !tables.iter().any(|it| self.dialect.identifier_eq(it, &table)) => {
                    let known = tables.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>();
                    let known = known.join(", ");
                    refuse("table", format!("the table `{shown}` is not allowed; allowed: {known}"))
                }
                _ => ControlFlow::Continue(()),
            },
            RelationKind::SchemaInfo if self.rule.schema => ControlFlow::Continue(()),
            RelationKind::SchemaInfo => refuse("catalog", schema_reason(&shown)),
            RelationKind::Catalog => refuse(
                "catalog",
                format!("`{shown}` is a system object of the database and is not available"),
            ),
            RelationKind::OtherDatabase => {
                refuse("schema", format!("`{shown}` is outside of the granted database"))
            }
        }
    }

    fn check_function(&self, name: &ObjectName, is_table: bool) -> ControlFlow<Refusal> {
        let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
        let names: Vec<String> = parts
            .unwrap_or_default()
            .iter()
            .map(|part| self.dialect.fold_identifier(part))
            .collect();
        let name = names.last().map(|name| name.to_lowercase()).unwrap_or_default();
        let refuse = |reason| ControlFlow::Break(Refusal::new("function", &name, reason));
        let describes = is_table && is_schema_function(self.dialect, &name);
        if function::is_forbidden(&name) || name.starts_with("pragma_") && !describes {
            return refuse(format!("the function `{name}` is not available"));
        }
        if describes && !self.rule.schema {
            return refuse(schema_reason(&name));
        }
        if self.rule.tables.is_none() || describes {
            return ControlFlow::Continue(());
        }
        let is_plain = match names.as_slice() {
            [_] => true,
            [schema, _] => schema == "pg_catalog" && self.dialect == Dialect::Postgres,
            _ => false,
        };
        let is_added = self.rule.functions.iter().any(|it| it.eq_ignore_ascii_case(&name));
        if is_added || is_plain && function::is_harmless(&name) {
            return ControlFlow::Continue(());
        }
        refuse(format!(
            "the function `{name}` is not among those known to be harmless; the operator can add \
             it to `functions` of the grant"
        ))
    }
}

/// Returns the reason to refuse a relation or function that describes tables.
fn schema_reason(name: &str) -> String {
    format!(
        "`{name}` describes the tables of the database, which the grant does not permit; the \
         operator can write `schema = true` in the grant"
    )
}

#[cfg(test)]
mod tests;
