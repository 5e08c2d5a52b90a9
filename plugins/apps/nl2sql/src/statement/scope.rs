//! Determines the tables and fields that a query uses. Names are resolved as the database does.
//!
//! A name in `FROM` refers to a CTE only where that CTE is visible: not outside of the query that
//! defines it, and on PostgreSQL without `RECURSIVE` not in itself or in a CTE before it. A query
//! in `WITH` or in `FROM` does not see the other relations of the `FROM`; a subquery in an
//! expression does.
//!
//! Only a name that is certainly not a field is reported as missing. The database decides what a
//! CTE or a function may have, except for a name in double quotes on SQLite, which SQLite would
//! interpret as a text.

mod name;
mod relation;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgOperator, FunctionArguments, GroupByExpr,
    Ident, NamedWindowExpr, OrderBy, Query, Select, SelectItem, SetExpr, TableFactor,
};
use sqlparser::tokenizer::Span;
use wattle_plugin::sql::Dialect;

use self::relation::{Ctes, Relation, Resolver, implied, lower, namesake};
use crate::knowledge::Knowledge;
use crate::statement::visit::{Visitor, walk};

/// The tables, fields and errors of a query.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Known fields as `table.field`, in order of appearance.
    pub(super) fields: Vec<String>,
    /// Relations that are neither in the allowlist nor visible CTEs.
    pub(super) unknown_tables: Vec<String>,
    /// Forms of `FROM` that are neither table, query nor function.
    pub(super) unsupported: Vec<&'static str>,
    /// Fields that no table at their position has.
    pub(super) missing: Vec<Missing>,
    /// Names in double quotes that are not fields at their position. Most are texts in the wrong
    /// quotes, and SQLite interprets them as texts.
    pub(super) quoted: Vec<String>,
    /// Aliases of a projection in double quotes, used where SQLite does not know them yet.
    pub(super) early: Vec<String>,
    /// Tables by the names under which the query reads them.
    pub(super) aliases: BTreeMap<String, String>,
}

/// A missing field.
#[derive(Debug)]
pub(super) struct Missing {
    /// `table.field`, or the field alone if several tables may have it.
    pub(super) name: String,
    /// Position in the statement.
    pub(super) span: Span,
    /// Qualifier before the dot, as written.
    qualifier: Option<String>,
    /// Name of the column, if the field is an item of a projection without an alias.
    pub(super) item: Option<Ident>,
    /// Tables that are visible at this position, with their names. Empty if the name is not
    /// certainly a field of one of them.
    tables: Vec<(String, String)>,
}

impl Missing {
    /// Returns how to write a `table.field` at this position: with the qualifier of the missing
    /// field if it is that of the table, or else with the only name of the table.
    pub(super) fn written(&self, field: &str) -> Option<String> {
        let (table, column) = field.split_once('.')?;
        let own = self.name.split_once('.').map(|(own, _)| own);
        let is_own = own.is_some_and(|own| own.eq_ignore_ascii_case(table));
        let mut names = self.tables.iter().filter(|(it, _)| it.eq_ignore_ascii_case(table));
        let (_, first) = names.next()?;
        if let Some(qualifier) = self.qualifier.as_ref().filter(|_| is_own) {
            return Some(format!("{qualifier}.{column}"));
        }
        names.all(|(_, name)| name == first).then(|| format!("{first}.{column}"))
    }
}

/// Examines a whole query. The names in `names` are in double quotes, but are not texts, because
/// they were in other quotes.
pub(super) fn examine(
    query: &Query,
    dialect: &Dialect,
    knowledge: &Knowledge,
    names: &BTreeSet<String>,
) -> Findings {
    let mut visitor = ScopeVisitor {
        knowledge,
        names,
        is_sqlite: !matches!(dialect, Dialect::Postgres),
        frames: Vec::new(),
        scopes: Vec::new(),
        bodies: BTreeMap::new(),
        apart: BTreeSet::new(),
        values: BTreeSet::new(),
        labels: BTreeSet::new(),
        namesakes: BTreeMap::new(),
        windows: BTreeSet::new(),
        open_windows: 0,
        findings: Findings::default(),
    };
    walk(query, &mut visitor);
    visitor.findings
}

/// Returns the aliases of all projections of a query, in lower case.
pub(super) fn given(query: &Query) -> BTreeSet<String> {
    let mut given = Given::default();
    walk(query, &mut given);
    given.names
}

#[derive(Default)]
struct Given {
    names: BTreeSet<String>,
}

impl Visitor for Given {
    fn pre_visit_select(&mut self, select: &Select) {
        self.names.extend(select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(lower(alias)),
            _ => None,
        }));
    }
}

/// The names that are visible in a `SELECT`.
struct Scope {
    relations: Vec<Relation>,
    /// Output columns of the projection. The value is true for a column that is certainly a number.
    outputs: BTreeMap<String, bool>,
    /// Address of the `WHERE` condition.
    condition: Option<usize>,
    /// True if SQLite knows the output columns at the current position, which is after the
    /// projection.
    knows_outputs: bool,
}

impl Scope {
    fn of(select: &Select, relations: Vec<Relation>, is_sqlite: bool) -> Self {
        let outputs = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                Some((lower(alias), text::is_number(expr)))
            }
            SelectItem::UnnamedExpr(expression) if !is_sqlite => {
                Some((implied(expression)?, text::is_number(expression)))
            }
            _ => None,
        });
        Self {
            outputs: outputs.collect(),
            relations,
            condition: select.selection.as_ref().map(expr_address),
            knows_outputs: false,
        }
    }

    /// Returns the scope of an `ORDER BY` after a `UNION`.
    fn unknown() -> Self {
        Self {
            relations: vec![Relation::unknown(None)],
            outputs: BTreeMap::new(),
            condition: None,
            knows_outputs: false,
        }
    }
}

/// A query that encloses the current position.
struct Frame {
    /// Visible CTEs.
    ctes: Ctes,
    /// Visible scopes of the enclosing queries, the outermost first.
    outer: Vec<usize>,
    /// Its own scopes that are visible at the current position.
    own: Vec<usize>,
    /// True if the query is one `SELECT`, and not a `UNION` or similar.
    is_select: bool,
    /// The scope of that `SELECT`.
    select: Option<usize>,
}

/// Traversal of the tree of a statement.
struct ScopeVisitor<'a> {
    knowledge: &'a Knowledge,
    /// Names in double quotes that were in MySQL's quotes.
    names: &'a BTreeSet<String>,
    is_sqlite: bool,
    /// The enclosing queries, the innermost last.
    frames: Vec<Frame>,
    /// All scopes so far.
    scopes: Vec<Scope>,
    /// CTEs that the bodies of CTEs see. Parts of the tree are identified by their addresses, which
    /// are stable while the tree is borrowed.
    bodies: BTreeMap<usize, Ctes>,
    /// Addresses of the subqueries in `FROM` without `LATERAL`, which do not see the other
    /// relations of the `FROM`.
    apart: BTreeSet<usize>,
    /// Names that may be texts because of what they are compared with.
    values: BTreeSet<usize>,
    /// Identifiers that name an argument of a function or a part of a value.
    labels: BTreeSet<usize>,
    /// Fields that give their names to items of a projection. The value is true if the field is the
    /// whole item.
    namesakes: BTreeMap<usize, bool>,
    /// Expressions of the windows in `WINDOW` clauses.
    windows: BTreeSet<usize>,
    /// Number of these expressions that enclose the current position.
    open_windows: usize,
    findings: Findings,
}

impl Visitor for ScopeVisitor<'_> {
    fn pre_visit_query(&mut self, query: &Query) {
        let frame = self.frame(query);
        self.frames.push(frame);
    }

    fn post_visit_query(&mut self, _query: &Query) {
        self.frames.pop();
    }

    fn pre_visit_select(&mut self, select: &Select) {
        let Some(frame) = self.frames.last() else { return };
        let relations = self.resolver(&frame.ctes).relations(&select.from);
        for relation in &relations {
            if let Some(table) = &relation.table {
                self.findings.aliases.insert(relation.name.clone(), table.clone());
            }
        }
        self.note_items(select);
        let index = self.add(Scope::of(select, relations, self.is_sqlite));
        self.open(index);
    }

    fn post_visit_select(&mut self, _select: &Select) {
        self.close();
    }

    fn pre_visit_group_by(&mut self, _group_by: &GroupByExpr) {
        self.know_outputs();
    }

    fn pre_visit_order_by(&mut self, _order_by: &OrderBy) {
        // `ORDER BY` belongs to the query, but refers to the relations of its `SELECT`.
        let select = self.frames.last().and_then(|frame| frame.select);
        let index = select.unwrap_or_else(|| self.add(Scope::unknown()));
        self.open(index);
        self.know_outputs();
    }

    fn post_visit_order_by(&mut self, _order_by: &OrderBy) {
        self.close();
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) {
        // SQLite knows the projection when it resolves arguments and conditions in `FROM`.
        self.know_outputs();
        match factor {
            TableFactor::Table { name, args: None, .. } if self.is_known(name) => {}
            TableFactor::Table { name, args: Some(call), .. } if self.may_call(name) => {
                self.note_labels(&call.args);
            }
            TableFactor::Function { name, args, .. } if self.may_call(name) => {
                self.note_labels(args);
            }
            TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => {
                self.unknown_table(name.to_string());
            }
            TableFactor::Derived { lateral: false, subquery, .. } => {
                self.apart.insert(query_address(subquery));
            }
            TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::UNNEST { .. } => {}
            other => self.unsupported(other),
        }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) {
        if self.windows.contains(&expr_address(expression)) {
            self.open_windows += 1;
        }
        if self.is_condition(expression) {
            self.know_outputs();
        }
        self.note_texts(expression);
        match expression {
            Expr::Identifier(name) if !self.labels.contains(&expr_address(expression)) => {
                self.bare(name, expression);
            }
            Expr::CompoundIdentifier(parts) => {
                if let [.., relation, column] = parts.as_slice() {
                    self.qualified(relation, column, expression);
                }
            }
            Expr::Function(Function { args: FunctionArguments::List(list), .. }) => {
                self.note_labels(&list.args);
            }
            Expr::CompoundFieldAccess { access_chain, .. } => {
                let parts = access_chain.iter().filter_map(|access| match access {
                    AccessExpr::Dot(part) => Some(expr_address(part)),
                    AccessExpr::Subscript(_) => None,
                });
                self.labels.extend(parts);
            }
            _ => {}
        }
    }

    fn post_visit_expr(&mut self, expression: &Expr) {
        if self.windows.contains(&expr_address(expression)) {
            self.open_windows -= 1;
        }
    }
}

impl ScopeVisitor<'_> {
    fn frame(&mut self, query: &Query) -> Frame {
        // A query is visited once.
        let body = self.bodies.get_mut(&query_address(query)).map(std::mem::take);
        let is_apart = self.apart.contains(&query_address(query)) || body.is_some();
        let (around, outer) = match self.frames.last() {
            Some(frame) => {
                let mut outer = frame.outer.clone();
                if !is_apart {
                    outer.extend(&frame.own);
                }
                (frame.ctes.clone(), outer)
            }
            None => (Ctes::new(), Vec::new()),
        };
        let mut ctes = body.unwrap_or(around);
        if let Some(with) = &query.with {
            let (all, bodies) = self.resolver(&ctes).with(with);
            let queries = with.cte_tables.iter().map(|cte| query_address(&cte.query));
            self.bodies.extend(queries.zip(bodies));
            ctes = all;
        }
        let is_select = matches!(query.body.as_ref(), SetExpr::Select(_));
        Frame { ctes, outer, own: Vec::new(), is_select, select: None }
    }

    /// Returns a resolver for a position with these visible CTEs.
    fn resolver<'k>(&'k self, ctes: &'k Ctes) -> Resolver<'k> {
        Resolver { knowledge: self.knowledge, is_sqlite: self.is_sqlite, ctes }
    }

    fn add(&mut self, scope: Scope) -> usize {
        self.scopes.push(scope);
        self.scopes.len() - 1
    }

    fn open(&mut self, scope: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.own.push(scope);
            if frame.is_select {
                frame.select = Some(scope);
            }
        }
    }

    fn close(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.own.pop();
        }
    }

    fn innermost(&self) -> Option<usize> {
        self.frames.last()?.own.last().copied()
    }

    fn know_outputs(&mut self) {
        if let Some(scope) = self.innermost() {
            self.scopes[scope].knows_outputs = true;
        }
    }

    fn is_condition(&self, expression: &Expr) -> bool {
        self.innermost()
            .is_some_and(|it| self.scopes[it].condition == Some(expr_address(expression)))
    }

    /// Returns the visible scopes, the nearest first.
    fn reachable(&self) -> impl Iterator<Item = &Scope> {
        let frame = self.frames.last().into_iter();
        let scopes = frame.flat_map(|it| it.own.iter().rev().chain(it.outer.iter().rev()));
        scopes.map(move |scope| &self.scopes[*scope])
    }

    /// Returns the visible relations, the nearest first.
    fn around(&self) -> impl Iterator<Item = &Relation> {
        self.reachable().flat_map(|scope| &scope.relations)
    }

    /// Records the items of the projection and the windows of a `SELECT`.
    fn note_items(&mut self, select: &Select) {
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expression) = item
                && let Some(field) = namesake(expression, self.is_sqlite)
            {
                self.namesakes.insert(expr_address(field), std::ptr::eq(field, expression));
            }
        }
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &window.1 {
                self.windows.extend(window.partition_by.iter().map(expr_address));
                self.windows.extend(window.order_by.iter().map(|it| expr_address(&it.expr)));
            }
        }
    }

    /// Records the names of arguments, which are not fields: `make_interval(days => 3)`.
    fn note_labels(&mut self, arguments: &[FunctionArg]) {
        for argument in arguments {
            let FunctionArg::ExprNamed { name, operator, .. } = argument else { continue };
            if !matches!(operator, FunctionArgOperator::Colon | FunctionArgOperator::Value) {
                self.labels.insert(expr_address(name));
            }
        }
    }
}

fn query_address(query: &Query) -> usize {
    std::ptr::from_ref(query) as usize
}

fn expr_address(expression: &Expr) -> usize {
    std::ptr::from_ref(expression) as usize
}

#[cfg(test)]
mod tests;
