//! Tracks which names are common table expressions (CTEs) at each position of a query.
//!
//! A name counts as a CTE exactly where the database resolves it to a CTE. Every other name counts
//! as a table, which must be granted. PostgreSQL resolves a `WITH` list in order, so `WITH secret
//! AS (SELECT * FROM secret) ...` reads the table. With `RECURSIVE`, and always on SQLite, each CTE
//! sees all CTEs of the list. The same text is then a circular reference, which the database
//! rejects.

use sqlparser::ast::Query;

use crate::statement::Dialect;

/// The enclosing queries, the innermost last.
#[derive(Default)]
pub(super) struct CteScopes {
    frames: Vec<QueryScope>,
}

/// One query with its `WITH` list.
struct QueryScope {
    ctes: Vec<Cte>,
    /// Number of visible CTEs.
    visible: usize,
}

struct Cte {
    name: String,
    /// Identifies the query of the CTE, which is visited separately.
    query: *const Query,
}

impl CteScopes {
    /// Enters a query: the statement, a subquery, or the query of a CTE.
    pub(super) fn enter(&mut self, dialect: Dialect, query: &Query) {
        let with = query.with.as_ref();
        let ctes: Vec<Cte> = with.map_or_else(Vec::new, |with| {
            let part = |cte: &sqlparser::ast::Cte| Cte {
                name: dialect.fold_identifier(&cte.alias.name),
                query: &raw const *cte.query,
            };
            with.cte_tables.iter().map(part).collect()
        });
        let sees_all = dialect == Dialect::Sqlite || with.is_some_and(|with| with.recursive);
        let visible = if sees_all { ctes.len() } else { 0 };
        self.frames.push(QueryScope { ctes, visible });
    }

    /// Leaves a query.
    pub(super) fn leave(&mut self, query: &Query) {
        self.frames.pop();
        if let Some((frame, index)) = self.find_cte(query) {
            frame.visible = frame.visible.max(index + 1);
        }
    }

    /// Returns true if a name is a CTE at the current position.
    pub(super) fn is_cte(&self, name: &str) -> bool {
        let visible = self.frames.iter().flat_map(|frame| &frame.ctes[..frame.visible]);
        visible.into_iter().any(|part| part.name == name)
    }

    /// Returns the innermost enclosing query, and the index of its CTE whose query is `query`.
    fn find_cte(&mut self, query: &Query) -> Option<(&mut QueryScope, usize)> {
        let frame = self.frames.last_mut()?;
        let index = frame.ctes.iter().position(|part| std::ptr::eq(part.query, query))?;
        Some((frame, index))
    }
}
