//! The table of snapshots.

use wattle_plugin::prelude::{Failure, Value, clock, params, sql};
use wattle_plugin::sql::Transaction;

use crate::DATABASE;
use crate::session::snapshot::Snapshot;
use crate::session::{Session, plain, whole};

const SELECT: &str = "SELECT context, blocks, spot_blocks, tool_outputs, \
    handbook_html AS html, handbook_video AS page_video, handbook_version AS version, \
    preview_path, updated_ms FROM session_state WHERE session_id = $1";

const PUT: &str = "INSERT INTO session_state (session_id, tenant, context, blocks, spot_blocks, \
    tool_outputs, handbook_html, handbook_video, handbook_version, preview_path, updated_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
    ON CONFLICT (session_id) DO UPDATE SET context = excluded.context, \
    blocks = excluded.blocks, spot_blocks = excluded.spot_blocks, \
    tool_outputs = excluded.tool_outputs, handbook_html = excluded.handbook_html, \
    handbook_video = excluded.handbook_video, \
    handbook_version = excluded.handbook_version, preview_path = excluded.preview_path, \
    updated_ms = excluded.updated_ms";

/// Returns the snapshot of a session; an empty one if there is none. A transaction that will write
/// the snapshot must lock the session first.
pub(crate) fn read(
    transaction: Option<&Transaction>,
    session_id: &str,
) -> Result<Snapshot, Failure> {
    let parameters = params![session_id];
    let rows = whole(match transaction {
        Some(transaction) => transaction.query(SELECT, parameters)?,
        None => sql::database(DATABASE).query(SELECT, parameters)?,
    })?;
    Ok(rows.read_first()?.unwrap_or_default())
}

/// Writes the snapshot of a session, which was read in this transaction.
pub(crate) fn write(
    transaction: &Transaction,
    session: &Session,
    snapshot: &Snapshot,
) -> Result<(), Failure> {
    let document = |value: &Value| (!value.is_null()).then(|| value.to_string());
    let row = params![
        &session.id,
        &session.tenant,
        document(&snapshot.context),
        document(&snapshot.blocks),
        document(&snapshot.spot_blocks),
        document(&snapshot.tool_outputs),
        snapshot.html.as_deref().map(plain),
        document(&snapshot.page_video),
        snapshot.version,
        snapshot.preview_path.as_deref().map(plain),
        // Two writes within a millisecond, or after the clock was set back, must have different
        // revisions.
        clock::now_ms().max(snapshot.updated_ms + 1),
    ];
    transaction.execute(PUT, row).map(|_| ())
}
