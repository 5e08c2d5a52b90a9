//! Pages of a list, limited to the size of a response.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::json;
use crate::sql::Rows;

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items in the order of the rows.
    pub items: Vec<T>,
    /// True if rows follow the page, also rows beyond the operator's limit on rows or size.
    pub has_more: bool,
}

impl<T> Page<T> {
    /// Returns the cursor of the next page, which `of` takes from the last item. Returns `None` for
    /// the last page.
    pub fn next_cursor<C>(&self, of: impl FnOnce(&T) -> C) -> Option<C> {
        self.items.last().filter(|_| self.has_more).map(of)
    }
}

impl Rows {
    /// Returns the first rows as a page of at most `limit` items, of which all but the first fit
    /// into `budget` bytes of JSON, such as [`web::PAGE_BYTES`](crate::web::PAGE_BYTES). The query
    /// selects one row more than `limit`, which tells a full page from the last one.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// #[derive(Deserialize, Serialize)]
    /// struct Entry {
    ///     id: i64,
    /// }
    ///
    /// const SELECT: &str = "SELECT id FROM entry WHERE id > $1 ORDER BY id LIMIT $2";
    ///
    /// /// Returns a page of entries, and the value of `after` for the next page.
    /// fn entries(after: i64, limit: u32) -> Result<(Vec<Entry>, Option<i64>), Failure> {
    ///     let parameters = params![after, i64::from(limit) + 1];
    ///     let rows = sql::database("chat").query(SELECT, parameters)?;
    ///     let page = rows.page::<Entry>(limit, web::PAGE_BYTES)?;
    ///     let next = page.next_cursor(|last| last.id);
    ///     Ok((page.items, next))
    /// }
    /// # let host = wattle_plugin::testing::FakeHost::new()
    /// #     .sql(|_| Ok(sql::Rows::new(["id"], vec![params![7], params![8]]).into()));
    /// # let (items, next) = host.run(|| entries(6, 1))?;
    /// # assert_eq!((items.len(), next), (1, Some(7)));
    /// # Ok::<_, Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `limit` if the result is truncated before its first row, because no next page could begin
    /// after it. `invalid` if a row does not fit the type.
    pub fn page<'a, T: Deserialize<'a> + Serialize>(
        &'a self,
        limit: u32,
        mut budget: usize,
    ) -> Result<Page<T>, Failure> {
        if self.truncated && self.is_empty() {
            return Err(super::too_large());
        }
        let limit = limit as usize;
        let mut page = Page { items: Vec::new(), has_more: self.truncated || self.len() > limit };
        for row in self.iter().take(limit) {
            let item = row.read::<T>()?;
            // Includes the comma after the item.
            let bytes = json::to_text("a row", &item)?.as_str().len() + 1;
            if bytes > budget && !page.items.is_empty() {
                page.has_more = true;
                break;
            }
            budget = budget.saturating_sub(bytes);
            page.items.push(item);
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use crate::params;
    use crate::sql::Rows;

    #[derive(Deserialize, Serialize)]
    struct Entry {
        n: i64,
    }

    fn rows(count: i64, truncated: bool) -> Rows {
        let values = (1..=count).map(|n| params![n]).collect();
        Rows { truncated, ..Rows::new(["n"], values) }
    }

    #[test]
    fn page_ends_at_its_limits_or_with_the_list() {
        // An item takes seven bytes, and its comma one.
        for (count, truncated, limit, budget, length, next) in [
            (0, false, 3, 100, 0, None),
            (3, false, 3, 100, 3, None),
            (3, false, 3, 24, 3, None),
            (4, false, 3, 100, 3, Some(3)),
            (2, true, 3, 100, 2, Some(2)),
            (3, false, 3, 23, 2, Some(2)),
            // A page has an item, however large.
            (3, false, 3, 0, 1, Some(1)),
            (1, false, 3, 0, 1, None),
        ] {
            let case = format!("{count} {truncated} {limit} {budget}");
            let rows = rows(count, truncated);
            let page = rows.page::<Entry>(limit, budget).unwrap();
            let found = (page.items.len(), page.next_cursor(|last| last.n));
            assert_eq!(found, (length, next), "{case}");
            assert_eq!(page.has_more, next.is_some(), "{case}");
        }
    }

    #[test]
    fn result_that_is_truncated_before_its_first_row_is_no_page() {
        let failure = rows(0, true).page::<Entry>(3, 100).map(|page| page.has_more).unwrap_err();
        assert_eq!(failure.code, "limit");
    }
}
