//! Arguments of `sql reader`.

use clap::{Args, Subcommand};
use wattle_run::grant::GrantKey;

/// The commands of `wattle sql`.
#[derive(Clone, Debug, Subcommand)]
pub enum SqlCommand {
    /// Create a PostgreSQL role that can read only the granted tables
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
    /// Plugin whose granted tables the role can read, or `APP/PLUGIN`; may be repeated [default: all
    /// plugins with read-only access]
    #[arg(long = "plugin", value_name = "PLUGIN")]
    pub plugins: Vec<GrantKey>,
    /// Environment variable with the URL of a database user that may create roles; with it, the
    /// statements are executed instead of printed
    #[arg(long, value_name = "VARIABLE")]
    pub execute_env: Option<String>,
    /// Environment variable with the password of the role
    #[arg(long, value_name = "VARIABLE", requires = "execute_env")]
    pub password_env: Option<String>,
}
