//! `PATCH /api/sessions/{id}/state`: the editor of the page writes back.

use wattle_plugin::prelude::{Failure, Request, Response, Value, handler, sql};

use crate::session::snapshot::Refused;
use crate::session::{lock, snapshot};
use crate::web::{Refusal, answer, find};
use crate::{DATABASE, preview};

/// Takes any of `blocks`, `spotBlocks`, `toolOutputs`, `handbookHtml` and `previewPath`. The last
/// one who writes is right, also against a run; the version of the page does not change.
#[handler(PATCH, "/api/sessions/{id}/state")]
pub(crate) fn patch(request: &Request) -> Result<Response, Failure> {
    answer(|| {
        let session = find(request)?;
        let body: Value = request.json()?;
        let preview = preview::path(&session.id)?;
        let transaction = sql::database(DATABASE).begin()?;
        lock(&transaction, &session.id)?;
        let mut state = snapshot::read(Some(&transaction), &session.id)?;
        if let Err(why) = snapshot::patch(&mut state, &body, &preview) {
            transaction.rollback()?;
            return Err(match why {
                Refused::Invalid(why) => Refusal::invalid(why),
                Refused::TooLarge(why) => Refusal::too_large(why),
            });
        }
        snapshot::write(&transaction, &session, &state)?;
        transaction.commit()?;
        Ok(Response::json(200, &snapshot::read(None, &session.id)?.view()?)?)
    })
}
