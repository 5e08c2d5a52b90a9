//! `/api/sessions/{id}/state`: the snapshot, and its changes by the editor of the page.

use wattle_plugin::prelude::{
    Extra, Failure, JsonSchema, Request, Response, Serialize, Value, handler, sql,
};
use wattle_plugin::web::{refuse, respond, status};

use crate::DATABASE;
use crate::block::Block;
use crate::preview::Preview;
use crate::session::snapshot::Refused;
use crate::session::{Session, Snapshot, StateView, lock, snapshot};
use crate::web::{ErrorDocument, find};

/// Changes of the snapshot.
#[expect(
    dead_code,
    reason = "only its schema is used: `fn patch` reads the body, for better errors"
)]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatePatch {
    blocks: Option<Vec<Block>>,
    /// The blocks that are spots; those of `blocks` by default.
    spot_blocks: Option<Vec<Block>>,
    /// The last output of every tool, without the page.
    tool_outputs: Option<Extra>,
    handbook_html: Option<String>,
    preview_path: Option<String>,
}

/// The reason why nothing was written, with the current state.
#[derive(Serialize, JsonSchema)]
struct Overtaken {
    error: String,
    state: StateView,
}

/// Shows the snapshot. A request with the current `etag` gets status 304, which costs little. By
/// this, two pages of one session see each other's edits.
#[handler(GET, "/api/sessions/{id}/state", returns = StateView, returns(304),
    error = ErrorDocument)]
pub(crate) fn show(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let state = snapshot::read(None, &find(request)?.id)?;
        let tag = tag(&state);
        if request.has_tag("if-none-match", &tag) {
            return Ok(Response::empty(status::NOT_MODIFIED).with_header("etag", tag));
        }
        tagged(200, &state.view(), &state)
    })
}

/// Changes any of `blocks`, `spotBlocks`, `toolOutputs`, `handbookHtml` and `previewPath`. The last
/// write wins, also against a run; the version of the page does not change. With `if-match` a
/// request writes only over the revision that it names: otherwise nothing is written, and the
/// response is 412 with the current state.
#[handler(PATCH, "/api/sessions/{id}/state", body = StatePatch, returns = StateView,
    returns(412) = Overtaken, error = ErrorDocument)]
pub(crate) fn patch(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let session = find(request)?;
        let body: Value = request.json()?;
        let preview = Preview::of(&session.id)?;
        let transaction = sql::database(DATABASE).begin()?;
        lock(&transaction, &session.id)?;
        let mut state = snapshot::read(Some(&transaction), &session.id)?;
        if request.header("if-match").is_some() && !request.has_tag("if-match", &tag(&state)) {
            transaction.rollback()?;
            return overtaken(&state);
        }
        if let Err(why) = snapshot::patch(&mut state, &body, &preview) {
            transaction.rollback()?;
            return Err(match why {
                Refused::Invalid(why) => refuse(status::BAD_REQUEST, why),
                Refused::TooLarge(why) => refuse(status::PAYLOAD_TOO_LARGE, why),
            });
        }
        snapshot::write(&transaction, &session, &state)?;
        transaction.commit()?;
        written(&session)
    })
}

fn written(session: &Session) -> Result<Response, Failure> {
    let state = snapshot::read(None, &session.id)?;
    tagged(200, &state.view(), &state)
}

/// Returns the response to a request that would overwrite a revision that it does not know.
fn overtaken(state: &Snapshot) -> Result<Response, Failure> {
    let error = "the guide was changed elsewhere in the meantime; nothing was saved";
    let overtaken = Overtaken { error: error.to_owned(), state: state.view() };
    tagged(status::PRECONDITION_FAILED, &overtaken, state)
}

fn tagged(status: u16, document: &impl Serialize, state: &Snapshot) -> Result<Response, Failure> {
    Ok(Response::json(status, document)?.with_header("etag", tag(state)))
}

/// Returns the revision as an entity tag.
fn tag(state: &Snapshot) -> String {
    format!("\"{}\"", state.updated_ms)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Response, json};
    use wattle_plugin::testing::FakeHost;

    use super::{patch, show};
    use crate::web::testing::{IDLE, RUNNING, sessions};

    fn tag(response: &Response) -> &str {
        let found = response.headers.iter().find(|(name, _)| name == "etag");
        found.map_or("", |(_, tag)| tag.as_str())
    }

    fn save(host: &FakeHost, if_match: Option<&str>) -> Response {
        let request = Request::new("PATCH", "/x").with_param("id", RUNNING);
        let request = request.with_body("{\"blocks\": []}");
        let request = match if_match {
            Some(tag) => request.with_header("if-match", tag),
            None => request,
        };
        host.run(|| patch(&request)).unwrap()
    }

    fn writes(host: &FakeHost) -> usize {
        let statements = host.statements();
        statements.iter().filter(|it| it.text.starts_with("INSERT")).count()
    }

    #[test]
    fn s3_52_without_a_condition_the_last_write_wins() {
        let host = sessions();
        assert_eq!(save(&host, None).status, 200);
        assert_eq!(writes(&host), 1);
    }

    #[test]
    fn s3_52_a_known_revision_is_overwritten() {
        for known in ["\"5\"", "*", "\"1\", \"5\""] {
            let host = sessions();
            assert_eq!(save(&host, Some(known)).status, 200, "{known}");
            assert_eq!(writes(&host), 1, "{known}");
        }
    }

    #[test]
    fn s3_52_an_unknown_revision_is_not_overwritten() {
        let host = sessions();
        let refused = save(&host, Some("\"4\""));
        let told = refused.json_body().unwrap();
        assert_eq!((refused.status, tag(&refused)), (412, "\"5\""));
        assert_eq!((&told["state"]["revision"], writes(&host)), (&json!(5), 0));
        assert!(told["error"].as_str().is_some_and(|it| it.contains("changed elsewhere")));
    }

    #[test]
    fn known_revision_is_not_modified() {
        let host = sessions();
        let request = Request::new("GET", "/x").with_param("id", RUNNING);
        let shown = host.run(|| show(&request)).unwrap();
        assert_eq!((shown.status, tag(&shown)), (200, "\"5\""));
        assert_eq!(shown.json_body().unwrap()["handbookVersion"], 2);
        let again = request.with_header("if-none-match", tag(&shown));
        assert_eq!(host.run(|| show(&again)).unwrap().status, 304);
        let empty = Request::new("GET", "/x").with_param("id", IDLE);
        let empty = host.run(|| show(&empty)).unwrap();
        assert_eq!(empty.json_body().unwrap()["revision"], 0);
        let unknown = Request::new("GET", "/x").with_param("id", "nobody");
        assert_eq!(host.run(|| show(&unknown)).unwrap().status, 404);
    }
}
