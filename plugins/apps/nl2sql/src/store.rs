//! The app's own database: sessions, history, log and downloads, one table a file.

pub(crate) mod downloads;
pub(crate) mod history;
pub(crate) mod sessions;
pub(crate) mod workflow_log;

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{Failure, Serialize};
use wattle_plugin::sql::{self, Database, Rows};
use wattle_plugin::web::PAGE_BYTES;

use crate::DATABASE;

/// A page of a list.
#[derive(Debug, PartialEq)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Number of items to the next page, which can be smaller than the requested limit.
    pub(crate) limit: u32,
    /// Number of items in the whole list.
    pub(crate) total: i64,
}

impl<T: DeserializeOwned + Serialize> Page<T> {
    /// Reads a page from at most `limit` rows. The page ends early where the host truncates the
    /// result, or where the response is full.
    fn read(rows: &Rows, limit: u32, total: i64) -> Result<Self, Failure> {
        let sql::Page { items, has_more } = rows.page::<T>(limit, PAGE_BYTES)?;
        let limit = if has_more { u32::try_from(items.len())? } else { limit };
        Ok(Self { items, limit, total })
    }
}

fn database() -> Database {
    sql::database(DATABASE)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json, params};
    use wattle_plugin::sql::Rows;

    use super::Page;

    #[test]
    fn truncated_page_ends_where_the_next_one_begins() {
        let page = |values, truncated| {
            let rows = Rows { truncated, ..Rows::new(["id"], values) };
            Page::<Value>::read(&rows, 200, 9)
        };
        let items = vec![json!({"id": 1}), json!({"id": 2})];
        let rows = vec![params![1], params![2]];
        let whole = Page { items: items.clone(), limit: 200, total: 9 };
        assert_eq!(page(rows.clone(), false), Ok(whole));
        assert_eq!(page(rows, true), Ok(Page { items, limit: 2, total: 9 }));
        assert_eq!(page(Vec::new(), true).unwrap_err().code, "limit");
    }

    #[test]
    fn page_fits_into_a_response() {
        let large = "x".repeat(3 << 20);
        let rows = Rows::new(["content"], vec![params![&large], params![&large]]);
        let page = Page::<Value>::read(&rows, 200, 2).unwrap();
        assert_eq!((page.items.len(), page.limit, page.total), (1, 1, 2));
    }
}
