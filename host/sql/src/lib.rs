//! SQL of Wattle: SQLite and PostgreSQL, migrations, transactions with journal markers.
//!
//! # Layout
//!
//! * [`databases`]: all configured databases by name; implements the engine's port `Sql`.
//! * [`config`]: where a database is.
//! * `statement`: what a statement may be at all; `readonly`: what it may be for a plugin that
//!   may only read, `writing` what one that may write leaves alone.
//! * `backend`: what a dialect implements; `sqlite` and `postgres` do.
//! * `transaction`: the rules that hold for transactions of both.
//! * `rows`: reading rows up to the limits.
//! * [`migrate`]: an app's migrations; [`reader`]: a role of PostgreSQL that only reads.
//! * [`error`] for operators, `failure` for guests.

mod backend;
pub mod config;
pub mod databases;
pub mod error;
mod failure;
pub mod migrate;
mod postgres;
pub mod reader;
mod readonly;
mod rows;
mod sqlite;
mod statement;
mod transaction;
mod writing;

pub use config::DatabaseConfig;
pub use databases::Databases;
pub use error::SqlError;
pub use migrate::Script;
pub use reader::ReaderRole;
