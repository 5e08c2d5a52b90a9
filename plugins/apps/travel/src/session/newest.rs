//! The newest rows of a table, limited to the size of a response.

use wattle_plugin::prelude::{Failure, Value};
use wattle_plugin::sql::{Row, Rows};

/// Rows of a session as the endpoints show them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Newest {
    /// In order, the newest last.
    pub(crate) shown: Vec<Value>,
    /// True if older rows are left out.
    pub(crate) is_cut: bool,
}

impl Newest {
    /// Takes rows, the newest first, while they fit into `room`, which is in bytes.
    pub(crate) fn of(
        rows: &Rows,
        room: &mut usize,
        view: impl Fn(Row<'_>) -> Result<Value, Failure>,
    ) -> Result<Self, Failure> {
        let mut newest = Self { shown: Vec::new(), is_cut: rows.truncated };
        for row in rows.iter() {
            let row = view(row)?;
            // Includes the comma after the row.
            let Some(rest) = room.checked_sub(row.to_string().len() + 1) else {
                newest.is_cut = true;
                break;
            };
            *room = rest;
            newest.shown.push(row);
        }
        newest.shown.reverse();
        Ok(newest)
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::params;
    use wattle_plugin::prelude::{Failure, Value, json};
    use wattle_plugin::sql::{Row, Rows};

    use super::Newest;

    fn view(row: Row<'_>) -> Result<Value, Failure> {
        row.get::<i64>("n").map(Value::from)
    }

    #[test]
    fn newest_rows_are_shown_in_order() {
        let rows =
            |n: std::ops::Range<i64>| Rows::new(["n"], n.rev().map(|n| params![n]).collect());
        let mut room = 100;
        let all = Newest::of(&rows(1..4), &mut room, view).unwrap();
        assert_eq!(all, Newest { shown: vec![json!(1), json!(2), json!(3)], is_cut: false });
        assert_eq!(room, 94);
        let mut room = 5;
        let some = Newest::of(&rows(1..4), &mut room, view).unwrap();
        assert_eq!(some, Newest { shown: vec![json!(2), json!(3)], is_cut: true });
        let mut cut = rows(1..2);
        cut.truncated = true;
        assert!(Newest::of(&cut, &mut 100, view).unwrap().is_cut, "by the database");
    }
}
