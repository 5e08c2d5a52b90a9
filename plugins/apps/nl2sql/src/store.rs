//! The app's own database: sessions, history, log and downloads, one table a file.

pub(crate) mod downloads;
pub(crate) mod history;
pub(crate) mod sessions;
pub(crate) mod workflow_log;

use wattle_plugin::sql::{self, Database};

use crate::DATABASE;

fn database() -> Database {
    sql::database(DATABASE)
}
