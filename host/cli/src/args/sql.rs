//! Arguments of `sql reader`.

use clap::{Args, Subcommand};
use wattle_graph::id::PluginName;

/// Verbs for databases.
#[derive(Clone, Debug, Subcommand)]
pub enum SqlCommand {
    /// Make a role of PostgreSQL that may read the tables of the grants, and nothing else
    Reader(SqlReaderArgs),
}

/// Arguments of `sql reader`.
#[derive(Clone, Debug, Args)]
pub struct SqlReaderArgs {
    /// Name of the database, as in `[sql.<name>]`
    #[arg(value_name = "DATABASE")]
    pub database: String,
    /// Name of the role
    #[arg(long, value_name = "ROLE", default_value = "wattle_reader")]
    pub role: String,
    /// Plugin whose grant counts; may be given several times [default: all that only read it]
    #[arg(long = "plugin", value_name = "PLUGIN")]
    pub plugins: Vec<PluginName>,
    /// Environment variable with the address of a user who may make roles: the statements are
    /// executed there, and not only printed
    #[arg(long, value_name = "VARIABLE")]
    pub execute_env: Option<String>,
    /// Environment variable with the password of the role
    #[arg(long, value_name = "VARIABLE", requires = "execute_env")]
    pub password_env: Option<String>,
}
