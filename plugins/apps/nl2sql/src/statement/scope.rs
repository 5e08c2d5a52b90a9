//! Which tables and fields a query uses, with names resolved as the database resolves them.
//!
//! A name in `FROM` is a CTE only where that CTE can be seen: not inside itself unless it is
//! recursive, not in one that stands before it, not outside of the query that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, Spanned as _, TableFactor,
    TableWithJoins, Visit as _, Visitor,
};
use sqlparser::tokenizer::Span;

use crate::knowledge::Knowledge;

/// Schemas that the white-listed tables are in, as a statement may write them.
const SCHEMAS: [&str; 2] = ["main", "public"];

/// Columns that every table of SQLite has without saying so.
const HIDDEN_COLUMNS: [&str; 3] = ["rowid", "oid", "_rowid_"];

/// What a query uses.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Known fields as `table.field`, in their order.
    pub(super) fields: Vec<String>,
    /// Relations that are neither in the white-list nor a CTE that can be seen there.
    pub(super) unknown_tables: Vec<String>,
    /// Fields that no table at that place has.
    pub(super) missing: Vec<Missing>,
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
    /// Tables that can be reached from there, with the names they have there.
    tables: Vec<(String, String)>,
}

impl Missing {
    /// How a `table.field` is written at this place; nothing if its table is not read there.
    pub(super) fn written(&self, field: &str) -> Option<String> {
        let (table, column) = field.split_once('.')?;
        let (_, name) = self.tables.iter().find(|(known, _)| known.eq_ignore_ascii_case(table))?;
        Some(format!("{name}.{column}"))
    }
}

/// Looks at the whole query.
pub(super) fn examine(query: &Query, knowledge: &Knowledge) -> Findings {
    let mut walk = Walk {
        knowledge,
        visible: vec![BTreeSet::new()],
        ctes: BTreeMap::new(),
        scopes: Vec::new(),
        floors: Vec::new(),
        findings: Findings::default(),
    };
    // It never breaks: everything is found at once.
    let _ = query.visit(&mut walk);
    walk.findings
}

/// What a name in `FROM` refers to.
#[derive(Clone)]
struct Relation {
    /// As the statement writes it.
    written: String,
    /// In lower case, without quotes.
    name: String,
    /// The table; nothing for what has columns of its own, such as a CTE.
    table: Option<String>,
}

/// What can be named inside a `SELECT`.
#[derive(Default)]
struct Scope {
    relations: Vec<Relation>,
    /// Names that the projection gives.
    outputs: BTreeSet<String>,
}

struct Walk<'a> {
    knowledge: &'a Knowledge,
    /// CTE names that can be seen, by the queries around.
    visible: Vec<BTreeSet<String>>,
    /// What the bodies of CTEs can see. A body is identified by its address, which is
    /// stable while the tree is borrowed.
    ctes: BTreeMap<usize, BTreeSet<String>>,
    scopes: Vec<Scope>,
    /// The first scope that each query around can name; the body of a CTE sees none outside.
    floors: Vec<usize>,
    findings: Findings,
}

impl Visitor for Walk<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let around = self.visible.last().cloned().unwrap_or_default();
        let outer = self.floors.last().copied().unwrap_or_default();
        let (mut seen, floor) = match self.ctes.remove(&address(query)) {
            Some(seen) => (seen, self.scopes.len()),
            None => (around, outer),
        };
        self.floors.push(floor);
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                let name = lower(&cte.alias.name);
                let mut inside = seen.clone();
                if with.recursive {
                    inside.insert(name.clone());
                }
                self.ctes.insert(address(&cte.query), inside);
                seen.insert(name);
            }
        }
        self.visible.push(seen);
        // `ORDER BY` belongs to the query but names what its `SELECT` reads.
        let scope = match query.body.as_ref() {
            SetExpr::Select(select) => self.scope(select),
            _ => Scope { relations: vec![opaque("")], ..Scope::default() },
        };
        self.scopes.push(scope);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.visible.pop();
        self.floors.pop();
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let scope = self.scope(select);
        self.scopes.push(scope);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args, .. } => {
                if args.is_some() || !self.is_known(name) {
                    self.unknown_table(name.to_string());
                }
            }
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => {}
            other => self.unknown_table(other.to_string()),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) => self.bare(name, expression.span()),
            Expr::CompoundIdentifier(parts) => {
                if let [.., relation, column] = parts.as_slice() {
                    self.qualified(relation, column, expression.span());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Walk<'_> {
    fn scope(&mut self, select: &Select) -> Scope {
        let mut relations = Vec::new();
        for joined in &select.from {
            self.relations(joined, &mut relations);
        }
        let outputs = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(lower(alias)),
            _ => None,
        });
        Scope { outputs: outputs.collect(), relations }
    }

    fn relations(&mut self, joined: &TableWithJoins, found: &mut Vec<Relation>) {
        let joins = joined.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&joined.relation).chain(joins) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    self.relations(table_with_joins, found);
                }
                TableFactor::Table { name, alias, args: None, .. } => {
                    let called = alias.as_ref().map(|alias| &alias.name);
                    found.push(self.relation(name, called));
                }
                TableFactor::Derived { alias, .. } => {
                    let name = alias.as_ref().map(|alias| lower(&alias.name));
                    found.push(opaque(&name.unwrap_or_default()));
                }
                _ => found.push(opaque("")),
            }
        }
    }

    fn relation(&mut self, name: &ObjectName, alias: Option<&Ident>) -> Relation {
        let last = name.0.last().and_then(|part| part.as_ident());
        let Some(called) = alias.or(last) else { return opaque("") };
        let table = match last {
            Some(last) if !self.is_cte(name) => self.knowledge.table(&last.value),
            _ => None,
        };
        if let Some(table) = table {
            self.findings.aliases.insert(lower(called), table.name.clone());
        }
        Relation {
            written: called.to_string(),
            name: lower(called),
            table: table.map(|table| table.name.clone()),
        }
    }

    /// A name with a schema is never a CTE.
    fn is_cte(&self, name: &ObjectName) -> bool {
        let [part] = name.0.as_slice() else { return false };
        let visible = self.visible.last();
        part.as_ident().zip(visible).is_some_and(|(name, seen)| seen.contains(&lower(name)))
    }

    fn is_known(&self, name: &ObjectName) -> bool {
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

    fn reachable(&self) -> &[Scope] {
        &self.scopes[self.floors.last().copied().unwrap_or_default()..]
    }

    /// Relations that can be named here, the nearest first.
    fn around(&self) -> impl Iterator<Item = &Relation> {
        self.reachable().iter().rev().flat_map(|scope| &scope.relations)
    }

    fn unknown_table(&mut self, name: String) {
        let name = name.split('(').next().unwrap_or_default().to_owned();
        if !self.findings.unknown_tables.contains(&name) {
            self.findings.unknown_tables.push(name);
        }
    }

    fn qualified(&mut self, relation: &Ident, column: &Ident, span: Span) {
        let wanted = lower(relation);
        let found = self.around().find(|it| it.name == wanted).cloned();
        let table = match found {
            Some(Relation { table: None, .. }) => return,
            Some(Relation { table: Some(table), .. }) => table,
            // Left to the database, which knows more ways to name things; but a wrong field of
            // a table is wrong in any case.
            None => match self.knowledge.table(&wanted) {
                Some(table) => table.name.clone(),
                None => return,
            },
        };
        self.field(&table, column, span);
    }

    fn bare(&mut self, name: &Ident, span: Span) {
        let wanted = lower(name);
        let is_output = self.reachable().iter().any(|scope| scope.outputs.contains(&wanted));
        if is_output || HIDDEN_COLUMNS.contains(&wanted.as_str()) {
            return;
        }
        let around: Vec<&Relation> = self.around().collect();
        let tables: Vec<String> = around.iter().filter_map(|it| it.table.clone()).collect();
        let has = |table: &String| self.knowledge.field(&format!("{table}.{wanted}")).is_some();
        if let Some(table) = tables.iter().find(|table| has(table)).cloned() {
            self.field(&table, name, span);
            return;
        }
        // A CTE or a subquery may have it.
        if tables.is_empty() || tables.len() < around.len() {
            return;
        }
        let mut distinct = tables.clone();
        distinct.sort();
        distinct.dedup();
        let missing = match distinct.as_slice() {
            [table] => format!("{table}.{}", name.value),
            _ => name.value.clone(),
        };
        self.missing(missing, span);
    }

    fn field(&mut self, table: &str, column: &Ident, span: Span) {
        let name = format!("{table}.{}", column.value);
        match self.knowledge.field(&name) {
            Some((table, column)) => {
                let field = format!("{}.{}", table.name, column.name);
                if !self.findings.fields.contains(&field) {
                    self.findings.fields.push(field);
                }
            }
            None if HIDDEN_COLUMNS.contains(&lower(column).as_str()) => {}
            None => self.missing(name, span),
        }
    }

    fn missing(&mut self, name: String, span: Span) {
        let tables = self.around().filter_map(|it| Some((it.table.clone()?, it.written.clone())));
        let tables = tables.collect();
        self.findings.missing.push(Missing { name, span, tables });
    }
}

fn opaque(name: &str) -> Relation {
    Relation { written: name.to_owned(), name: name.to_owned(), table: None }
}

/// Databases fold ASCII only.
fn lower(name: &Ident) -> String {
    name.value.to_ascii_lowercase()
}

fn address(query: &Query) -> usize {
    std::ptr::from_ref(query) as usize
}
