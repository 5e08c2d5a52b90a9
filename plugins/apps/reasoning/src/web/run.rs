//! `POST /api/v1/reasoning/sessions/{session_id}/run`: runs the newest turn, or a new one.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, handler, json, runs,
};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::CONFLICT;

use crate::GRAPH;
use crate::session::{self, Session, TurnRow, status};
use crate::state::Turn;
use crate::web::sessions::input;
use crate::web::{BUSY, Envelope, ErrorEnvelope, Outcome, find, outcome, respond, waiting};

/// A further message of the user. Without one, the newest turn is run.
#[derive(Default, Deserialize, JsonSchema)]
struct RunRequest {
    #[serde(default)]
    user_input: Option<String>,
}

/// Runs a turn until it ends or needs a clarification.
#[handler(POST, "/api/v1/reasoning/sessions/{session_id}/run", body = Option<RunRequest>,
    returns = Envelope<Outcome>, error = ErrorEnvelope)]
pub(crate) fn run(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let body = if request.body.is_empty() { RunRequest::default() } else { request.json()? };
        let tenant = request.tenant.as_deref();
        let (session, thread) = session::sync(tenant, find(request)?)?;
        if thread.is_some_and(|thread| thread.is_running()) {
            return Err(refuse(CONFLICT, BUSY));
        }
        let newest = session::newest_turn(&session.id)?;
        if let Some(asked) = session::pending(&session)? {
            return Ok(waiting(&session, newest, asked));
        }
        match turn_to_run(&session, newest, body.user_input.as_deref())? {
            TurnDecision::Answered(turn) => outcome(&session, turn),
            TurnDecision::Run(turn) => start(tenant, session, &turn),
        }
    })
}

/// What a request does with a turn.
enum TurnDecision {
    /// The turn is completed, and the request has no new input.
    Answered(TurnRow),
    Run(TurnRow),
}

fn turn_to_run(
    session: &Session,
    newest: TurnRow,
    user_input: Option<&str>,
) -> Result<TurnDecision, Failure> {
    if session.status == status::CANCELLED {
        return Err(refuse(CONFLICT, "会话已取消，请创建新的会话"));
    }
    let Some(user_input) = user_input else {
        // A failed turn is retried.
        let is_over = newest.status == status::COMPLETED;
        return Ok(if is_over {
            TurnDecision::Answered(newest)
        } else {
            TurnDecision::Run(newest)
        });
    };
    let user_input = input(user_input)?;
    if newest.status == status::CREATED && newest.user_input == user_input {
        return Ok(TurnDecision::Run(newest));
    }
    Ok(TurnDecision::Run(TurnRow::fresh(session::next_turn_no(&newest), user_input)))
}

/// Starts a run of the turn and waits for it. Another request that reads the session can record the
/// run first. After a crash in between nothing is lost, because the state of the run has its turn.
fn start(tenant: Option<&str>, session: Session, turn: &TurnRow) -> Result<Outcome, Failure> {
    let works_for = Turn {
        session_id: session.id.clone(),
        turn_id: turn.id.clone(),
        turn_no: turn.turn_no,
        preferred_ontology_codes: session.preferred(),
    };
    let run = runs::Start::graph(GRAPH)
        .thread_id(&session.id)
        .input(json!({ "query": turn.user_input, "turn": works_for }))
        .start()?;
    session::adopt(&session.id, &run.run_id, turn)?;
    runs::wait(&run)?;
    let (session, _) = session::sync(tenant, session)?;
    let turn = session::find_turn(&session.id, &turn.id)?;
    outcome(&session, turn.ok_or_else(|| Failure::internal("the turn is gone"))?)
}
