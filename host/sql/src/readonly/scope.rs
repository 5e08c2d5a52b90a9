//! Which names are common table expressions at some place of a query.
//!
//! A name that is one for the database is one here, and every other counts as a table: then it has
//! to be allowed. PostgreSQL reads a list in its order, so `WITH secret AS (SELECT * FROM secret)
//! ...` is about the table. Behind `RECURSIVE`, and always on SQLite, each part sees all parts: the
//! same text is a circle there, which the database refuses.

use sqlparser::ast::Query;

use crate::statement::Dialect;

/// The queries around the current place, the innermost last.
#[derive(Default)]
pub(super) struct Scopes {
    frames: Vec<Frame>,
}

/// One query with its `WITH` list.
struct Frame {
    parts: Vec<Part>,
    /// How many of the parts are visible now.
    visible: usize,
}

struct Part {
    name: String,
    /// Where its query is, as an identity: parts are visited as queries of their own.
    query: *const Query,
}

impl Scopes {
    /// Enters a query: the whole statement, a subquery, or the part of a `WITH` list.
    pub(super) fn enter(&mut self, dialect: Dialect, query: &Query) {
        let with = query.with.as_ref();
        let parts: Vec<Part> = with.map_or_else(Vec::new, |with| {
            let part = |cte: &sqlparser::ast::Cte| Part {
                name: dialect.fold(&cte.alias.name),
                query: &raw const *cte.query,
            };
            with.cte_tables.iter().map(part).collect()
        });
        let sees_all = dialect == Dialect::Sqlite || with.is_some_and(|with| with.recursive);
        let visible = if sees_all { parts.len() } else { 0 };
        self.frames.push(Frame { parts, visible });
    }

    /// Leaves a query.
    pub(super) fn leave(&mut self, query: &Query) {
        self.frames.pop();
        if let Some((frame, index)) = self.part_of(query) {
            frame.visible = frame.visible.max(index + 1);
        }
    }

    /// Whether a name is a common table expression here.
    pub(super) fn knows(&self, name: &str) -> bool {
        let visible = self.frames.iter().flat_map(|frame| &frame.parts[..frame.visible]);
        visible.into_iter().any(|part| part.name == name)
    }

    /// The innermost query, if `query` is part of its `WITH` list.
    fn part_of(&mut self, query: &Query) -> Option<(&mut Frame, usize)> {
        let frame = self.frames.last_mut()?;
        let index = frame.parts.iter().position(|part| std::ptr::eq(part.query, query))?;
        Some((frame, index))
    }
}
