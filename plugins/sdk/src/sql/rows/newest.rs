//! The newest rows of a list, limited to the size of a response.

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::json;
use crate::sql::Rows;

/// The newest rows of a list as JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Newest {
    /// The rows in order, the newest last.
    pub items: Vec<serde_json::Value>,
    /// True if older rows are left out, also by the operator's limit on rows or size.
    pub truncated: bool,
}

impl Rows {
    /// Returns the rows, the newest first in the result of the query, while their JSON fits into
    /// `budget` bytes. Several lists of one response share the budget.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    ///
    /// #[derive(Deserialize, Serialize)]
    /// struct Entry {
    ///     n: i64,
    /// }
    ///
    /// let rows = sql::Rows::new(["n"], vec![params![3], params![2], params![1]]);
    /// let mut budget = 20;
    /// let newest = rows.newest::<Entry>(&mut budget)?;
    /// assert_eq!(newest.items, [json!({"n": 2}), json!({"n": 3})]);
    /// assert!(newest.truncated && budget == 4);
    /// # Ok::<_, Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid` if a row does not fit the type.
    pub fn newest<'a, T: Deserialize<'a> + Serialize>(
        &'a self,
        budget: &mut usize,
    ) -> Result<Newest, Failure> {
        let mut newest = Newest { items: Vec::new(), truncated: self.truncated };
        for row in self.iter() {
            let item = json::to_value("a row", row.read::<T>()?)?;
            // Includes the comma after the item.
            let Some(rest) = budget.checked_sub(item.to_string().len() + 1) else {
                newest.truncated = true;
                break;
            };
            *budget = rest;
            newest.items.push(item);
        }
        newest.items.reverse();
        Ok(newest)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use crate::params;
    use crate::sql::Rows;

    #[derive(Deserialize, Serialize)]
    struct Entry {
        n: i64,
    }

    #[test]
    fn newest_rows_are_in_order_within_the_budget() {
        // An item takes seven bytes, and its comma one.
        for (count, is_truncated, mut budget, expected, truncated, left) in [
            (3, false, 100, json!([{"n": 1}, {"n": 2}, {"n": 3}]), false, 76),
            (3, false, 17, json!([{"n": 2}, {"n": 3}]), true, 1),
            (3, false, 7, json!([]), true, 7),
            (1, true, 100, json!([{"n": 1}]), true, 92),
        ] {
            let values = (1..=count).rev().map(|n| params![n]).collect();
            let rows = Rows { truncated: is_truncated, ..Rows::new(["n"], values) };
            let newest = rows.newest::<Entry>(&mut budget).unwrap();
            let found = (json!(newest.items), newest.truncated, budget);
            assert_eq!(found, (expected, truncated, left));
        }
    }
}
