//! `PATCH /api/sessions/{id}/state`: the editor of the page writes back.

use wattle_plugin::prelude::{Failure, Request, Response, Value, handler, sql};

use crate::DATABASE;
use crate::session::{lock, snapshot};
use crate::web::{Refusal, answer, find};

/// Takes any of `blocks`, `spotBlocks`, `toolOutputs`, `handbookHtml` and `previewPath`. The last
/// one who writes is right, also against a run; the version of the page does not change.
#[handler(PATCH, "/api/sessions/{id}/state")]
pub(crate) fn patch(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let session = find(request)?;
        let body: Value = request.json()?;
        let transaction = sql::database(DATABASE).begin()?;
        lock(&transaction, &session.id)?;
        let mut state = snapshot::read(Some(&transaction), &session.id)?;
        if let Err(why) = snapshot::patch(&mut state, &body) {
            transaction.rollback()?;
            return Err(Refusal::invalid(why));
        }
        snapshot::write(&transaction, &session, &state)?;
        transaction.commit()?;
        Ok(Response::json(200, &snapshot::read(None, &session.id)?.view()?)?)
    })
}
