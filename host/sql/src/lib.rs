//! SQL of Wattle: SQLite and PostgreSQL, migrations, transactions with commit markers.
//!
//! # Layout
//!
//! * [`databases`]: all configured databases by name; implements the port `Sql`.
//! * [`config`]: URLs of databases.
//! * `statement`: which statements are allowed at all; `readonly`: which of them a plugin with
//!   read-only access can run, which `checker` decides on threads of their own; `readwrite`: which
//!   of them a plugin with write access can run.
//! * `backend`: the interface of a dialect; `sqlite` and `postgres` implement it.
//! * `transaction`: rules for transactions of both dialects.
//! * `rows`: reads rows up to the limits.
//! * [`migrate`]: applies migrations of apps, with limits in [`limit`]; `migration`: their types.
//! * [`reader_role`]: PostgreSQL roles that only read.
//! * [`error`] for operators, `failure` for guests.

mod backend;
mod checker;
pub mod config;
pub mod databases;
pub mod error;
mod failure;
pub mod limit;
pub mod migrate;
mod migration;
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
