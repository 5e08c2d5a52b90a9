//! SQL of Wattle: SQLite and PostgreSQL, migrations, transactions with commit markers.
//!
//! # Layout
//!
//! * [`databases`]: all configured databases by name; implements the port `Sql`.
//! * [`config`]: URLs of databases.
//! * `statement`: checks of all statements; `readonly`: checks of statements of plugins with
//!   read-only access, which `checker` runs on separate threads; `readwrite`: checks of statements
//!   of plugins with write access, and of migrations of PostgreSQL.
//! * `backend`: the interface of a dialect; `sqlite` and `postgres` implement it.
//! * `transaction`: rules for transactions of both dialects.
//! * `rows`: reads rows up to the limits.
//! * [`migrate`]: applies migrations of apps, with limits in [`limit`]; `migration`: their types.
//! * [`parse`]: splits migrations without a database, for tests.
//! * [`reader_role`]: PostgreSQL roles that only read.
//! * [`error`]: errors for operators; `failure`: failures for guests.

mod backend;
mod checker;
pub mod config;
pub mod databases;
pub mod error;
mod failure;
pub mod limit;
pub mod migrate;
mod migration;
pub mod parse;
mod postgres;
pub mod reader_role;
mod readonly;
mod readwrite;
mod rows;
mod sqlite;
mod statement;
mod transaction;

pub use config::DatabaseConfig;
pub use databases::Databases;
pub use error::SqlError;
pub use migrate::Script;
pub use reader_role::ReaderRole;
