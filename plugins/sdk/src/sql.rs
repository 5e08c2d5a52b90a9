//! SQL statements on granted databases, SQLite and PostgreSQL. Parameters are written as `$1`, `$2`
//! and so on in both dialects.
//!
//! ```
//! use wattle_plugin::prelude::*;
//! use wattle_plugin::testing::FakeHost;
//!
//! let host = FakeHost::new().sql(|statement| {
//!     assert_eq!(statement.database, "asset");
//!     Ok(sql::Rows::new(["id", "name"], vec![params![7, "lamp"]]).into())
//! });
//! host.run(|| {
//!     let database = sql::database("asset");
//!     let rows = database.query("SELECT id, name FROM item WHERE id = $1", params![7])?;
//!     for row in &rows {
//!         let id: i64 = row.get("id")?;
//!         let name: Option<String> = row.get("name")?;
//!         assert_eq!((id, name.as_deref()), (7, Some("lamp")));
//!     }
//!     // Or as a type whose fields have the names of the columns.
//!     let items: Vec<Item> = rows.read_all()?;
//!     assert_eq!(items[0].name, "lamp");
//!     Ok::<_, Failure>(())
//! })?;
//!
//! #[derive(Deserialize)]
//! struct Item {
//!     name: String,
//! }
//! # Ok::<_, Failure>(())
//! ```

mod database;
mod from_value;
mod rows;
mod value;

pub use self::database::{Database, Dialect, Transaction, database};
pub use self::from_value::FromValue;
pub use self::rows::{Column, Executed, Newest, Page, Row, Rows, json};
pub use self::value::Value;
