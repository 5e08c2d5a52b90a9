//! `chat_download`: CSV files for download, and how long they are available.

use wattle_plugin::prelude::{BlobRef, Failure, clock, params};
use wattle_plugin::sql::Transaction;

use crate::owner::Owner;
use crate::setting;
use crate::store::database;

const MS_PER_HOUR: i64 = 3_600_000;

const INSERT: &str = "INSERT INTO chat_download (file, session_id, blob, row_count, created_ms)
    VALUES ($1, $2, $3, $4, $5)";

const DELETE_OLD: &str = "DELETE FROM chat_download WHERE created_ms < $1";

const DELETE: &str = "DELETE FROM chat_download WHERE session_id = $1";

const SELECT: &str = "SELECT d.blob FROM chat_download AS d
    JOIN chat_session AS s ON s.session_id = d.session_id
    WHERE d.file = $1 AND s.tenant = $2 AND s.admin_id = $3 AND d.created_ms >= $4";

/// A CSV file of a session.
pub(crate) struct Download {
    pub(crate) file: String,
    pub(crate) blob: BlobRef,
    pub(crate) rows: usize,
}

/// Records a file inside of a transaction, and deletes the records of expired files.
pub(crate) fn add(
    transaction: &Transaction,
    session_id: &str,
    download: &Download,
) -> Result<(), Failure> {
    transaction.execute(DELETE_OLD, params![oldest()?])?;
    let rows = i64::try_from(download.rows).unwrap_or(i64::MAX);
    let parameters =
        params![&download.file, session_id, download.blob.as_str(), rows, clock::now_ms()];
    transaction.execute(INSERT, parameters).map(|_| ())
}

/// Returns the blob of a file, if the file belongs to the owner and has not expired.
pub(crate) fn find(file: &str, owner: &Owner) -> Result<Option<BlobRef>, Failure> {
    let parameters = params![file, &owner.tenant, owner.admin_id, oldest()?];
    let rows = database().query(SELECT, parameters)?;
    rows.first().map(|row| row.get::<String>("blob").map(BlobRef)).transpose()
}

/// Deletes the records of a session's files.
pub(crate) fn delete(session_id: &str) -> Result<(), Failure> {
    database().execute(DELETE, params![session_id]).map(|_| ())
}

/// Returns the creation time before which files count as expired now, in milliseconds since 1970.
fn oldest() -> Result<i64, Failure> {
    Ok(clock::now_ms() - i64::from(setting::retention_hours()?) * MS_PER_HOUR)
}
