//! `GET /api/v1/reasoning/sessions/{session_id}/trace`: the audit trail.

use wattle_plugin::prelude::{Failure, JsonSchema, Request, Response, Serialize, handler};
use wattle_plugin::web::refuse;
use wattle_plugin::web::status::BAD_REQUEST;

use crate::audit::{self, TraceEvent};
use crate::session::{self, Status};
use crate::web::{Envelope, ErrorEnvelope, find, respond};

/// Default number of rows in a response.
const LIMIT: i64 = 1_000;

/// Maximum number of rows in a response, since each row can contain a prompt.
const MAX_LIMIT: i64 = 5_000;

/// A page of the audit trail.
#[derive(Serialize, JsonSchema)]
struct Trace {
    session_id: String,
    #[schemars(with = "Status")]
    status: String,
    events: Vec<TraceEvent>,
    /// Value of `after` for the next page; `null` on the last page.
    next_after: Option<i64>,
}

/// Responds with the rows of the audit trail in order, in pages by `after` and `limit`.
#[handler(GET, "/api/v1/reasoning/sessions/{session_id}/trace",
    query(after: Option<i64>, limit: Option<i64>), returns = Envelope<Trace>,
    error = ErrorEnvelope)]
pub(crate) fn trace(request: &Request) -> Result<Response, Failure> {
    respond(request, || {
        let after = number(request, "after")?.unwrap_or(0).max(0);
        let limit = number(request, "limit")?.unwrap_or(LIMIT).clamp(1, MAX_LIMIT);
        let (session, _) = session::sync(request.tenant.as_deref(), find(request)?)?;
        let page = audit::list(&session.id, after, u32::try_from(limit)?)?;
        let next_after = page.next_cursor(|last| last.seq);
        let (session_id, status) = (session.id, session.status);
        Ok(Trace { session_id, status, events: page.items, next_after })
    })
}

fn number(request: &Request, name: &str) -> Result<Option<i64>, Failure> {
    request.number(name).map_err(|_| refuse(BAD_REQUEST, format!("{name} 必须是整数")))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Response, Value, json, params, sql};
    use wattle_plugin::testing::FakeHost;

    use super::trace;
    use crate::testing;

    const SESSION: [&str; 6] =
        ["id", "status", "metadata", "event_cursor", "created_at", "updated_at"];

    const EVENT: [&str; 7] =
        ["id", "seq", "turn_id", "step", "event_type", "payload", "created_at"];

    /// A host with a session that has `count` rows, of which a result has at most `most`.
    fn host(count: i64, most: usize) -> FakeHost {
        host_with_payloads(count, most, 0)
    }

    /// A host like [`host`], whose rows have payloads of a number of bytes.
    fn host_with_payloads(count: i64, most: usize, bytes: usize) -> FakeHost {
        let payload = json!({ "result": "x".repeat(bytes) }).to_string();
        testing::host().sql(move |statement| {
            if statement.text.contains("FROM reasoning_session") {
                let session = params!["s", "completed", "{}", 0, "t", "t"];
                return Ok(sql::Rows::new(SESSION, vec![session]).into());
            }
            let [_, sql::Value::Integer(after), sql::Value::Integer(limit)] =
                statement.parameters[..]
            else {
                panic!("{statement:?}")
            };
            let numbers = (after + 1..=count).take(usize::try_from(limit).unwrap());
            let event =
                |seq: i64| params![seq, seq, None::<&str>, "llm", "llm_prompt_sent", &payload, "t"];
            let mut events: Vec<_> = numbers.map(event).collect();
            let truncated = events.len() > most;
            events.truncate(most);
            Ok(sql::Rows { truncated, ..sql::Rows::new(EVENT, events) }.into())
        })
    }

    fn get(host: &FakeHost, after: &Value, limit: i64) -> Response {
        let request = Request::new("GET", "/api/v1/reasoning/sessions/s/trace")
            .with_param("session_id", "s")
            .with_query("after", after.to_string())
            .with_query("limit", limit.to_string());
        host.run(|| trace(&request)).unwrap()
    }

    /// Returns the numbers of the rows in each page.
    fn pages(host: &FakeHost, limit: i64) -> Vec<Vec<i64>> {
        let (mut pages, mut after) = (Vec::new(), json!(0));
        while !after.is_null() {
            let body = get(host, &after, limit).json_body().unwrap();
            let events = body["data"]["events"].as_array().unwrap();
            pages.push(events.iter().map(|event| event["seq"].as_i64().unwrap()).collect());
            after = body["data"]["next_after"].clone();
        }
        pages
    }

    #[test]
    fn pages_have_all_rows_in_order() {
        assert_eq!(pages(&host(5, 9), 2), [vec![1, 2], vec![3, 4], vec![5]]);
        assert_eq!(pages(&host(2, 9), 2), [vec![1, 2]]);
        assert_eq!(pages(&host(0, 9), 2), [Vec::<i64>::new()]);
    }

    #[test]
    fn truncated_results_are_not_the_last_page() {
        assert_eq!(pages(&host(5, 2), 4), [vec![1, 2], vec![3, 4], vec![5]]);
        // A single row is larger than a result.
        assert_eq!(get(&host(1, 0), &json!(0), 4).status, 500);
    }

    #[test]
    fn pages_fit_into_a_response() {
        for (bytes, expected) in [
            (1 << 20, vec![vec![1, 2, 3], vec![4, 5]]),
            // Each page has a row, however large.
            (4 << 20, (1..=5).map(|seq| vec![seq]).collect()),
        ] {
            assert_eq!(pages(&host_with_payloads(5, 9, bytes), 9), expected, "{bytes}");
        }
    }
}
