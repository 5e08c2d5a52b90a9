//! Resolves a name in `FROM`, and determines the columns of the relation.
//!
//! The columns are known for a table, for a CTE or a subquery by its projection, and for a function
//! that expands a document. Any other relation may have any column.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{
    Cte, Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableAlias, TableFactor, TableWithJoins, With,
};

use crate::knowledge::Knowledge;
use crate::statement::visit::{Visitor, walk};

/// Columns of the functions that expand a document on SQLite.
const DOCUMENT: &[&str] =
    &["key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"];

/// Functions of SQLite that return rows and read no table, with their columns. The host permits
/// them.
const UNFOLDING: [(&str, &[&str]); 5] = [
    ("generate_series", &["value", "start", "stop", "step"]),
    ("json_each", DOCUMENT),
    ("json_tree", DOCUMENT),
    ("jsonb_each", DOCUMENT),
    ("jsonb_tree", DOCUMENT),
];

/// Returns the columns of a function of SQLite that returns rows and reads no table.
pub(super) fn unfolded(function: &str) -> Option<&'static [&'static str]> {
    UNFOLDING.iter().find(|(name, _)| *name == function).map(|(_, columns)| *columns)
}

/// A relation in `FROM`.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// The name as written.
    pub(super) written: String,
    /// The name in lower case, without quotes.
    pub(super) name: String,
    /// The table; `None` for a relation with columns of its own, such as a CTE.
    pub(super) table: Option<String>,
    columns: Columns,
}

impl Relation {
    fn new(called: Option<&Ident>, columns: Columns) -> Self {
        Self {
            written: called.map(ToString::to_string).unwrap_or_default(),
            name: called.map(lower).unwrap_or_default(),
            table: None,
            columns,
        }
    }

    /// Creates a relation that may have any column.
    pub(super) fn unknown(called: Option<&Ident>) -> Self {
        Self::new(called, Columns::any())
    }

    /// Returns true if the relation may have a column, given in lower case.
    pub(super) fn may_have(&self, column: &str) -> bool {
        self.columns.is_open || self.columns.names.contains(column)
    }
}

/// The columns of a relation.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// Names in lower case.
    names: BTreeSet<String>,
    /// True if there may be other columns.
    is_open: bool,
}

impl Columns {
    fn any() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(str::to_ascii_lowercase).collect();
        Self { names, is_open: false }
    }

    fn extend(&mut self, others: &Self) {
        self.names.extend(others.names.iter().cloned());
        self.is_open |= others.is_open;
    }

    /// Replaces the names of the columns by those of an alias, if it has any.
    fn renamed(self, alias: Option<&TableAlias>) -> Self {
        match alias {
            Some(alias) if !alias.columns.is_empty() => {
                Self::of(alias.columns.iter().map(|column| column.name.value.as_str()))
            }
            _ => self,
        }
    }
}

/// CTEs by their names in lower case.
pub(super) type Ctes = BTreeMap<String, Columns>;

/// Resolver of names at one position.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    pub(super) knowledge: &'a Knowledge,
    pub(super) is_sqlite: bool,
    /// Visible CTEs.
    pub(super) ctes: &'a Ctes,
}

impl<'a> Resolver<'a> {
    /// Returns the columns of the CTE with a name. A name with a schema is never a CTE.
    pub(super) fn cte(self, name: &ObjectName) -> Option<&'a Columns> {
        let [part] = name.0.as_slice() else { return None };
        self.ctes.get(&lower(part.as_ident()?))
    }

    /// Returns the CTEs that are visible after a `WITH`, and those that each of its bodies sees.
    ///
    /// A body sees all CTEs on SQLite, which ignores the word `RECURSIVE`, and on PostgreSQL with
    /// that word. A cycle is an error of the database. So that the database reports it, a body
    /// without `UNION` that reads its own name uses the fields of the table with that name.
    pub(super) fn with(self, with: &With) -> (Ctes, Vec<Ctes>) {
        let mut ctes = self.ctes.clone();
        if !self.is_sqlite && !with.recursive {
            let mut bodies = Vec::with_capacity(with.cte_tables.len());
            for cte in &with.cte_tables {
                let columns = self.with_ctes(&ctes).defined(cte);
                bodies.push(ctes.clone());
                ctes.insert(lower(&cte.alias.name), columns);
            }
            return (ctes, bodies);
        }
        for cte in &with.cte_tables {
            ctes.insert(lower(&cte.alias.name), Columns::any());
        }
        for cte in in_order(&with.cte_tables) {
            let columns = self.with_ctes(&ctes).defined(cte);
            ctes.insert(lower(&cte.alias.name), columns);
        }
        let inside = |cte: &Cte| {
            let own = lower(&cte.alias.name);
            let is_recursive = matches!(cte.query.body.as_ref(), SetExpr::SetOperation { .. });
            let is_table = !is_recursive && self.knowledge.table(&own).is_some();
            let mut inside = Ctes::new();
            for (name, columns) in ctes.iter().filter(|(name, _)| !is_table || **name != own) {
                inside.insert(name.clone(), columns.clone());
            }
            inside
        };
        let bodies = with.cte_tables.iter().map(inside).collect();
        (ctes, bodies)
    }

    /// Returns a resolver with other visible CTEs.
    fn with_ctes<'c>(self, ctes: &'c Ctes) -> Resolver<'c>
    where
        'a: 'c,
    {
        Resolver { knowledge: self.knowledge, is_sqlite: self.is_sqlite, ctes }
    }

    /// Returns the columns of a CTE definition.
    fn defined(self, cte: &Cte) -> Columns {
        self.query(&cte.query).renamed(Some(&cte.alias))
    }

    /// Returns all relations of a `FROM`, in order.
    pub(super) fn relations(self, from: &[TableWithJoins]) -> Vec<Relation> {
        from.iter().flat_map(|joined| self.joined(joined)).collect()
    }

    fn joined(self, joined: &TableWithJoins) -> Vec<Relation> {
        let mut found = self.factor(&joined.relation);
        for join in &joined.joins {
            found.extend(self.factor(&join.relation));
        }
        found
    }

    fn factor(self, factor: &TableFactor) -> Vec<Relation> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                vec![self.named(name, alias.as_ref())]
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                vec![called(name, alias.as_ref())]
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let columns = self.query(subquery).renamed(alias.as_ref());
                vec![Relation::new(alias.as_ref().map(|alias| &alias.name), columns)]
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut found = self.joined(table_with_joins);
                found.extend(alias.as_ref().map(|alias| Relation::unknown(Some(&alias.name))));
                found
            }
            TableFactor::UNNEST { alias, .. } | TableFactor::TableFunction { alias, .. } => {
                vec![Relation::unknown(alias.as_ref().map(|alias| &alias.name))]
            }
            _ => vec![Relation::unknown(None)],
        }
    }

    fn named(self, name: &ObjectName, alias: Option<&TableAlias>) -> Relation {
        let last = name.0.last().and_then(|part| part.as_ident());
        let called = alias.map(|alias| &alias.name).or(last);
        if let Some(columns) = self.cte(name) {
            return Relation::new(called, columns.clone().renamed(alias));
        }
        let Some(table) = last.and_then(|last| self.knowledge.table(&last.value)) else {
            return Relation::unknown(called);
        };
        // With new names, its columns are no longer fields of the table.
        let is_renamed = alias.is_some_and(|alias| !alias.columns.is_empty());
        if is_renamed {
            return Relation::unknown(called);
        }
        let columns = Columns::of(table.columns.iter().map(|column| column.name.as_str()));
        Relation { table: Some(table.name.clone()), ..Relation::new(called, columns) }
    }

    fn query(self, query: &Query) -> Columns {
        let Some(with) = &query.with else { return self.body(&query.body) };
        let (ctes, _) = self.with(with);
        self.with_ctes(&ctes).body(&query.body)
    }

    fn body(self, body: &SetExpr) -> Columns {
        let mut body = body;
        // The first operand names the columns.
        while let SetExpr::SetOperation { left, .. } = body {
            body = left;
        }
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => {
                let count = values.rows.first().map_or(0, |row| row.content.len());
                let names = (1..=count).map(|number| format!("column{number}"));
                Columns { names: names.collect(), is_open: false }
            }
            _ => Columns::any(),
        }
    }

    fn select(self, select: &Select) -> Columns {
        let relations = self.relations(&select.from);
        let mut columns = Columns::default();
        for item in &select.projection {
            match item {
                SelectItem::ExprWithAlias { alias, .. } => {
                    columns.names.insert(lower(alias));
                }
                SelectItem::UnnamedExpr(expression) => {
                    columns.names.insert(name_of(expression));
                }
                SelectItem::Wildcard(_) => {
                    for relation in &relations {
                        columns.extend(&relation.columns);
                    }
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let wanted = name.0.last().and_then(|part| part.as_ident()).map(lower);
                    match relations.iter().find(|it| Some(&it.name) == wanted.as_ref()) {
                        Some(relation) => columns.extend(&relation.columns),
                        None => columns.is_open = true,
                    }
                }
                _ => columns.is_open = true,
            }
        }
        columns
    }
}

/// Sorts CTEs that see each other so that each follows those that it reads.
fn in_order(tables: &[Cte]) -> Vec<&Cte> {
    let mut pending: Vec<(&Cte, BTreeSet<String>)> =
        tables.iter().map(|cte| (cte, read_by(&cte.query))).collect();
    let mut ordered = Vec::with_capacity(pending.len());
    while !pending.is_empty() {
        let names: BTreeSet<String> =
            pending.iter().map(|(cte, _)| lower(&cte.alias.name)).collect();
        let next = pending.iter().position(|(cte, read)| {
            let own = lower(&cte.alias.name);
            read.iter().all(|name| *name == own || !names.contains(name))
        });
        // There is none in a cycle.
        let (cte, _) = pending.remove(next.unwrap_or_default());
        ordered.push(cte);
    }
    ordered
}

/// Returns the names without a schema that a query reads anywhere.
fn read_by(query: &Query) -> BTreeSet<String> {
    let mut read = Read::default();
    walk(query, &mut read);
    read.names
}

#[derive(Default)]
struct Read {
    names: BTreeSet<String>,
}

impl Visitor for Read {
    fn pre_visit_relation(&mut self, relation: &ObjectName) {
        if let [part] = relation.0.as_slice() {
            self.names.extend(part.as_ident().map(lower));
        }
    }
}

/// Returns the relation of a function in `FROM`.
fn called(name: &ObjectName, alias: Option<&TableAlias>) -> Relation {
    let last = name.0.last().and_then(|part| part.as_ident());
    let columns = last
        .and_then(|last| unfolded(&lower(last)))
        .map_or_else(Columns::any, |columns| Columns::of(columns.iter().copied()));
    Relation::new(alias.map(|alias| &alias.name).or(last), columns.renamed(alias))
}

/// Returns the name that SQLite gives a column without an alias: the name of the field, or the text
/// of the expression.
fn name_of(expression: &Expr) -> String {
    match expression {
        Expr::Identifier(name) => lower(name),
        Expr::CompoundIdentifier(parts) => parts.last().map(lower).unwrap_or_default(),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        other => other.to_string().to_ascii_lowercase(),
    }
}

/// Returns the field that gives its name to a column without an alias.
pub(super) fn namesake(expression: &Expr, is_sqlite: bool) -> Option<&Expr> {
    match expression {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Some(expression),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => namesake(inner, is_sqlite),
        Expr::Cast { expr: inner, .. } | Expr::Case { else_result: Some(inner), .. }
            if !is_sqlite =>
        {
            namesake(inner, is_sqlite)
        }
        _ => None,
    }
}

/// Returns the name that PostgreSQL gives a column without an alias, if no field gives it.
pub(super) fn implied(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Function(function) => {
            function.name.0.last().and_then(|part| part.as_ident()).map(lower)
        }
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => implied(inner),
        Expr::Case { .. } => Some("case".to_owned()),
        Expr::Extract { .. } => Some("extract".to_owned()),
        _ => None,
    }
}

/// Returns a name in lower case, without its quotes. Databases fold ASCII only.
pub(super) fn lower(name: &Ident) -> String {
    name.value.to_ascii_lowercase()
}
