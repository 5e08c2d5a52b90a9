//! Which tables and fields a query uses, with names resolved as the database resolves them.
//!
//! A name in `FROM` is a CTE only where that CTE can be seen: not outside of the query that defines
//! it, and on PostgreSQL without `RECURSIVE` not inside itself or one that stands before it. What
//! stands in `WITH` or in `FROM` does not see what is read beside it; a subquery in an expression
//! does.
//!
//! Only what surely is no field is reported as missing. What a CTE or a function may have is left
//! to the database, except for a name in double quotes on SQLite: it would be taken for a text.

mod name;
mod relation;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgOperator, FunctionArguments, GroupByExpr,
    Ident, NamedWindowExpr, OrderBy, Query, Select, SelectItem, SetExpr, TableFactor, Visit as _,
    Visitor,
};
use sqlparser::tokenizer::Span;
use wattle_plugin::sql::Dialect;

use self::relation::{Ctes, Known, Relation, implied, lower, namesake};
use crate::knowledge::Knowledge;

/// What a query uses.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Known fields as `table.field`, in their order.
    pub(super) fields: Vec<String>,
    /// Relations that are neither in the white-list nor a CTE that can be seen there.
    pub(super) unknown_tables: Vec<String>,
    /// Forms of `FROM` that are neither table, query nor function.
    pub(super) unsupported: Vec<&'static str>,
    /// Fields that no table at that place has.
    pub(super) missing: Vec<Missing>,
    /// Names in double quotes that are no fields at their place. Most are texts in the wrong
    /// quotes, and SQLite takes them for texts.
    pub(super) quoted: Vec<String>,
    /// Names in double quotes that the projection gives, where SQLite does not know them yet.
    pub(super) early: Vec<String>,
    /// Names under which tables are read, with the tables.
    pub(super) aliases: BTreeMap<String, String>,
}

/// A field that is not there.
#[derive(Debug)]
pub(super) struct Missing {
    /// `table.field`, or the field alone if it could be of several tables.
    pub(super) name: String,
    /// Where it stands.
    pub(super) span: Span,
    /// What stands before its dot.
    qualifier: Option<String>,
    /// The name of the column, if the field without an alias is an item of a projection.
    pub(super) item: Option<Ident>,
    /// Tables that can be reached from there, with the names they have there. None if the name is
    /// not surely meant as a field of what is read there.
    tables: Vec<(String, String)>,
}

impl Missing {
    /// How a `table.field` is written at this place: behind the name that stands there, if that
    /// is the table's, or else behind the only name that the table has there.
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

/// Looks at the whole query. Some names in double quotes are `names` and no texts: they stood in
/// other quotes.
pub(super) fn examine(
    query: &Query,
    dialect: &Dialect,
    knowledge: &Knowledge,
    names: &BTreeSet<String>,
) -> Findings {
    let mut walk = Walk {
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
    // It never breaks: everything is found at once.
    let _ = query.visit(&mut walk);
    walk.findings
}

/// Names that projections give anywhere in a query, in lower case.
pub(super) fn given(query: &Query) -> BTreeSet<String> {
    let mut given = Given::default();
    // It never breaks.
    let _ = query.visit(&mut given);
    given.names
}

#[derive(Default)]
struct Given {
    names: BTreeSet<String>,
}

impl Visitor for Given {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.names.extend(select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(lower(alias)),
            _ => None,
        }));
        ControlFlow::Continue(())
    }
}

/// What can be named inside a `SELECT`.
struct Scope {
    relations: Vec<Relation>,
    /// Names that the projection gives, each with whether it is surely a number.
    outputs: BTreeMap<String, bool>,
    /// The condition of `WHERE`, by its address.
    condition: Option<usize>,
    /// Whether SQLite knows the names of the projection where the walk is: behind it.
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
            condition: select.selection.as_ref().map(place),
            knows_outputs: false,
        }
    }

    /// What `ORDER BY` names behind a `UNION`.
    fn unknown() -> Self {
        Self {
            relations: vec![Relation::unknown(None)],
            outputs: BTreeMap::new(),
            condition: None,
            knows_outputs: false,
        }
    }
}

/// A query on the way to the place where the walk is.
struct Frame {
    /// CTEs that can be seen in it.
    ctes: Ctes,
    /// Scopes of the queries around that can be named in it, the outermost first.
    outer: Vec<usize>,
    /// Its own scopes that can be named where the walk is.
    own: Vec<usize>,
    /// Whether it is one `SELECT`, and not a `UNION` or the like.
    is_select: bool,
    /// The scope of that `SELECT`.
    select: Option<usize>,
}

struct Walk<'a> {
    knowledge: &'a Knowledge,
    /// Names in double quotes that stood in MySQL's quotes.
    names: &'a BTreeSet<String>,
    is_sqlite: bool,
    /// The queries around, the innermost last.
    frames: Vec<Frame>,
    /// All scopes so far.
    scopes: Vec<Scope>,
    /// What the bodies of CTEs can see. Parts of the tree are identified by their addresses, which
    /// are stable while the tree is borrowed.
    bodies: BTreeMap<usize, Ctes>,
    /// Queries in `FROM` that do not see what is read beside them.
    apart: BTreeSet<usize>,
    /// Names that something is compared with, so that they may be texts.
    values: BTreeSet<usize>,
    /// Identifiers that name an argument of a function or a part of a value.
    labels: BTreeSet<usize>,
    /// Fields that give their names to items of a projection, each with whether it is the whole
    /// item.
    namesakes: BTreeMap<usize, bool>,
    /// Expressions of the windows behind `WINDOW`.
    windows: BTreeSet<usize>,
    /// Those of them that the walk is in.
    open_windows: usize,
    findings: Findings,
}

impl Visitor for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let frame = self.frame(query);
        self.frames.push(frame);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.frames.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let Some(frame) = self.frames.last() else { return ControlFlow::Continue(()) };
        let relations = self.known(&frame.ctes).relations(&select.from);
        for relation in &relations {
            if let Some(table) = &relation.table {
                self.findings.aliases.insert(relation.name.clone(), table.clone());
            }
        }
        self.note_items(select);
        let index = self.add(Scope::of(select, relations, self.is_sqlite));
        self.open(index);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &Select) -> ControlFlow<()> {
        self.close();
        ControlFlow::Continue(())
    }

    fn pre_visit_group_by(&mut self, _group_by: &GroupByExpr) -> ControlFlow<()> {
        self.know_outputs();
        ControlFlow::Continue(())
    }

    fn pre_visit_order_by(&mut self, _order_by: &OrderBy) -> ControlFlow<()> {
        // It belongs to the query but names what its `SELECT` reads.
        let select = self.frames.last().and_then(|frame| frame.select);
        let index = select.unwrap_or_else(|| self.add(Scope::unknown()));
        self.open(index);
        self.know_outputs();
        ControlFlow::Continue(())
    }

    fn post_visit_order_by(&mut self, _order_by: &OrderBy) -> ControlFlow<()> {
        self.close();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        // SQLite reads arguments and conditions in `FROM` when it knows the projection.
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
                self.apart.insert(address(subquery));
            }
            TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::UNNEST { .. } => {}
            other => self.unsupported(other),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if self.windows.contains(&place(expression)) {
            self.open_windows += 1;
        }
        if self.is_condition(expression) {
            self.know_outputs();
        }
        self.note_texts(expression);
        match expression {
            Expr::Identifier(name) if !self.labels.contains(&place(expression)) => {
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
                    AccessExpr::Dot(part) => Some(place(part)),
                    AccessExpr::Subscript(_) => None,
                });
                self.labels.extend(parts);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if self.windows.contains(&place(expression)) {
            self.open_windows -= 1;
        }
        ControlFlow::Continue(())
    }
}

/// The way through the tree.
impl Walk<'_> {
    fn frame(&mut self, query: &Query) -> Frame {
        let body = self.bodies.remove(&address(query));
        let is_apart = self.apart.remove(&address(query)) || body.is_some();
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
            let (all, bodies) = self.known(&ctes).with(with);
            let queries = with.cte_tables.iter().map(|cte| address(&cte.query));
            self.bodies.extend(queries.zip(bodies));
            ctes = all;
        }
        let is_select = matches!(query.body.as_ref(), SetExpr::Select(_));
        Frame { ctes, outer, own: Vec::new(), is_select, select: None }
    }

    /// What names stand for where these CTEs can be seen.
    fn known<'k>(&'k self, ctes: &'k Ctes) -> Known<'k> {
        Known { knowledge: self.knowledge, is_sqlite: self.is_sqlite, ctes }
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
        self.innermost().is_some_and(|it| self.scopes[it].condition == Some(place(expression)))
    }

    /// Scopes that can be named here, the nearest first.
    fn reachable(&self) -> impl Iterator<Item = &Scope> {
        let frame = self.frames.last().into_iter();
        let scopes = frame.flat_map(|it| it.own.iter().rev().chain(it.outer.iter().rev()));
        scopes.map(move |scope| &self.scopes[*scope])
    }

    /// Relations that can be named here, the nearest first.
    fn around(&self) -> impl Iterator<Item = &Relation> {
        self.reachable().flat_map(|scope| &scope.relations)
    }

    /// Notes what matters in parts of a `SELECT`.
    fn note_items(&mut self, select: &Select) {
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expression) = item
                && let Some(field) = namesake(expression, self.is_sqlite)
            {
                self.namesakes.insert(place(field), std::ptr::eq(field, expression));
            }
        }
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &window.1 {
                self.windows.extend(window.partition_by.iter().map(place));
                self.windows.extend(window.order_by.iter().map(|it| place(&it.expr)));
            }
        }
    }

    /// Names of arguments are no fields: `make_interval(days => 3)`.
    fn note_labels(&mut self, arguments: &[FunctionArg]) {
        for argument in arguments {
            let FunctionArg::ExprNamed { name, operator, .. } = argument else { continue };
            if !matches!(operator, FunctionArgOperator::Colon | FunctionArgOperator::Value) {
                self.labels.insert(place(name));
            }
        }
    }
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query) as usize
}

fn place(expression: &Expr) -> usize {
    std::ptr::from_ref(expression) as usize
}

#[cfg(test)]
mod tests;
