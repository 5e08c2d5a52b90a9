//! Results of statements: rows and their columns.

mod newest;
mod page;
mod read;

use serde_json::Map;

pub use self::newest::Newest;
pub use self::page::Page;
pub use self::read::json;
use crate::failure::{Failure, code};
use crate::sql::{FromValue, Value};

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Type in the database, in lower case. Empty if the database does not report it.
    pub type_name: String,
}

/// Rows of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Columns of the result.
    pub columns: Vec<Column>,
    /// Values of each row, in the order of the columns.
    pub values: Vec<Vec<Value>>,
    /// True if rows are missing because the result exceeds the operator's limit on rows or size.
    pub truncated: bool,
}

/// The effect of a statement that writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Executed {
    /// Number of rows that the statement changed.
    pub rows_affected: u64,
    /// Rows of a `RETURNING` clause. Empty if the statement has none.
    pub returned: Rows,
}

/// A row of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    columns: &'a [Column],
    values: &'a [Value],
}

impl Rows {
    /// Builds rows, for tests.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>, values: Vec<Vec<Value>>) -> Self {
        let column = |name: &str| Column { name: name.to_owned(), type_name: String::new() };
        Self { columns: columns.into_iter().map(column).collect(), values, truncated: false }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the first row, if there is one.
    pub fn first(&self) -> Option<Row<'_>> {
        self.iter().next()
    }

    /// Returns the first row.
    ///
    /// # Errors
    ///
    /// `not-found` if there are no rows.
    pub fn one(&self) -> Result<Row<'_>, Failure> {
        self.first().ok_or_else(|| Failure::not_found("the query found no row"))
    }

    /// Returns the rows if none is missing, for lists that a program takes for the whole.
    ///
    /// ```
    /// use wattle_plugin::sql::Rows;
    ///
    /// assert!(Rows::default().whole().is_ok());
    /// let truncated = Rows { truncated: true, ..Rows::default() };
    /// assert_eq!(truncated.whole().unwrap_err().code, "limit");
    /// ```
    ///
    /// # Errors
    ///
    /// `limit` if the result is truncated.
    pub fn whole(self) -> Result<Self, Failure> {
        if self.truncated { Err(too_large()) } else { Ok(self) }
    }

    /// Iterates over the rows.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.values.iter().map(|values| Row { columns: &self.columns, values })
    }

    /// Returns the values of a column as a type.
    ///
    /// ```
    /// use wattle_plugin::{params, sql::Rows};
    ///
    /// let rows = Rows::new(["id"], vec![params![1], params![2]]);
    /// assert_eq!(rows.column::<i64>("id")?, [1, 2]);
    /// # Ok::<_, wattle_plugin::Failure>(())
    /// ```
    pub fn column<T: FromValue>(&self, name: &str) -> Result<Vec<T>, Failure> {
        self.iter().map(|row| row.get(name)).collect()
    }

    /// Returns the rows as JSON objects.
    pub fn to_json(&self) -> Vec<serde_json::Value> {
        self.iter().map(Row::to_json).collect()
    }
}

/// Returns the failure for a truncated result.
fn too_large() -> Failure {
    let message = "the result exceeds the limit on rows or size; query fewer rows";
    Failure::new(code::LIMIT, message)
}

impl<'a> IntoIterator for &'a Rows {
    type Item = Row<'a>;
    type IntoIter = Box<dyn Iterator<Item = Row<'a>> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl Row<'_> {
    /// Returns the value of a column as a type; `Option` accepts null.
    ///
    /// # Errors
    ///
    /// `invalid` if the result has no such column, or if its value does not fit the type.
    pub fn get<T: FromValue>(&self, column: &str) -> Result<T, Failure> {
        let index = self.columns.iter().position(|known| known.name == column);
        let value = index.and_then(|index| self.values.get(index));
        let value = value.ok_or_else(|| {
            Failure::invalid(format!("the query has no column `{column}`; name it in the `SELECT`"))
        })?;
        T::from_value(value).ok_or_else(|| {
            let (expected, kind) = (T::EXPECTED, value.kind());
            Failure::invalid(format!("column `{column}` is {kind}, expected {expected}"))
        })
    }

    /// Returns the row as a JSON object.
    pub fn to_json(self) -> serde_json::Value {
        let names = self.columns.iter().map(|column| column.name.clone());
        let fields: Map<_, _> = names.zip(self.values.iter().map(Value::to_json)).collect();
        serde_json::Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Rows;
    use crate::params;

    #[test]
    fn errors_name_the_column() {
        let rows = Rows::new(["id"], vec![params!["x"]]);
        let row = rows.one().unwrap();
        let failure = row.get::<i64>("id").unwrap_err();
        assert_eq!(failure.message, "column `id` is text, expected a whole number");
        assert!(row.get::<i64>("name").unwrap_err().message.contains("`name`"));
    }

    #[test]
    fn rows_become_json_objects() {
        let rows = Rows::new(["a", "b"], vec![params![1, None::<i64>]]);
        assert_eq!(rows.to_json(), [json!({"a": 1, "b": null})]);
    }
}
