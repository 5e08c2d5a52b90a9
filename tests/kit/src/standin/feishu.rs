//! Feishu: tenant tokens, and records of Bitable tables.
//!
//! Errors are codes in the body, as in the real service. A record that is sent twice with one
//! `client_token` is stored once.

mod search;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::{Map, Value, json};

use super::{call::Call, faults::Fault, journal::now_ms, reply::Reply};

/// Lifetime of a token, in milliseconds.
const TOKEN_MS: u64 = 7_200_000;

/// Minimum remaining lifetime of a token that is issued again, in milliseconds.
const REUSE_MS: u64 = 1_800_000;

/// Maximum number of records in one batch.
const BATCH: usize = 1_000;

/// The columns of the table, and whether a column holds numbers.
const COLUMNS: [(&str, bool); 5] =
    [("备注", false), ("分类", false), ("金额", true), ("收支", false), ("日期", true)];

/// Error codes with their HTTP status and message.
const CODES: [(i64, u16, &str); 12] = [
    (403, 403, "Forbidden"),
    (10_003, 200, "invalid param"),
    (10_014, 200, "app secret invalid"),
    (99_991_661, 400, "Missing access token for authorization"),
    (99_991_663, 400, "Invalid access token for authorization"),
    (99_992_402, 400, "field validation failed"),
    (1_254_018, 200, "InvalidFilter"),
    (1_254_015, 200, "Field types do not match"),
    (1_254_045, 200, "FieldNameNotFound"),
    (1_254_064, 200, "DatetimeFieldConvFail"),
    (1_254_104, 200, "RecordAddOnceExceedLimit"),
    (1_254_291, 200, "Write conflict"),
];

/// Returns the fault that makes Feishu respond with an error code.
pub fn feishu_refusal(code: i64) -> Fault {
    let (status, body) = refusal(code);
    Fault::Status { status, retry_after: None, body: Some(body) }
}

/// The state of the service.
#[derive(Debug, Default)]
pub(super) struct Feishu {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    issued: u32,
    /// The newest token and its expiry.
    token: Option<(String, u64)>,
    records: Vec<Value>,
    /// The index of the record that was created with each `client_token`.
    made: BTreeMap<String, usize>,
}

impl Feishu {
    /// Returns all records, oldest first.
    pub(super) fn records(&self) -> Vec<Value> {
        self.lock().records.clone()
    }

    /// Revokes all tokens that were issued so far.
    pub(super) fn revoke_tokens(&self) {
        self.lock().token = None;
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Responds to a request under `/open-apis`.
pub(super) fn answer(feishu: &Feishu, call: &Call, segments: &[&str]) -> Reply {
    let mut memory = feishu.lock();
    let (rule, answered) = match (call.method.as_str(), segments) {
        ("POST", ["auth", "v3", "tenant_access_token", "internal"]) => {
            ("feishu token", token(&mut memory, call))
        }
        (_, ["bitable", "v1", "apps", _, "tables", _, "records"]) => {
            ("feishu records", records(&mut memory, call))
        }
        ("POST", ["bitable", "v1", "apps", _, "tables", _, "records", "batch_create"]) => {
            ("feishu batch", allowed(&memory, call).and_then(|()| create_all(&mut memory, call)))
        }
        ("POST", ["bitable", "v1", "apps", _, "tables", _, "records", "search"]) => {
            let found = allowed(&memory, call).and_then(|()| search::search(&memory.records, call));
            ("feishu search", found)
        }
        _ => ("feishu", Err(403)),
    };
    let response = match answered {
        Ok(document) => Json(document).into_response(),
        Err(code) => error(code),
    };
    Reply { rule, response }
}

/// Returns an error in Feishu's format.
pub(super) fn error_body(message: &str) -> Value {
    json!({"code": 500, "msg": message})
}

fn error(code: i64) -> Response {
    let (status, body) = refusal(code);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    (status, Json(body)).into_response()
}

fn refusal(code: i64) -> (u16, Value) {
    let known = CODES.iter().find(|(known, ..)| *known == code);
    let (status, words) = known.map_or((400, "unknown"), |(_, status, words)| (*status, *words));
    (status, json!({"code": code, "msg": words, "error": {"log_id": "standin"}}))
}

fn token(memory: &mut Memory, call: &Call) -> Result<Value, i64> {
    let field = |name: &str| {
        let text = call.json.as_ref().and_then(|body| body.get(name)?.as_str());
        text.filter(|text| !text.is_empty())
    };
    let (Some(_), Some(secret)) = (field("app_id"), field("app_secret")) else {
        return Err(10_003);
    };
    if secret == "bad-secret" {
        return Err(10_014);
    }
    let now = now_ms();
    let kept = memory.token.take().filter(|(_, ends_ms)| *ends_ms >= now + REUSE_MS);
    let (token, ends_ms) = kept.unwrap_or_else(|| {
        memory.issued += 1;
        (format!("t-standin-{}", memory.issued), now + TOKEN_MS)
    });
    memory.token = Some((token.clone(), ends_ms));
    let expire = (ends_ms - now).div_ceil(1_000);
    Ok(json!({"code": 0, "msg": "ok", "tenant_access_token": token, "expire": expire}))
}

/// Checks that the request has a valid token.
fn allowed(memory: &Memory, call: &Call) -> Result<(), i64> {
    let shown = call.bearer().filter(|token| !token.is_empty()).ok_or(99_991_661)?;
    let is_valid =
        memory.token.as_ref().is_some_and(|(token, ends_ms)| token == shown && *ends_ms > now_ms());
    if is_valid { Ok(()) } else { Err(99_991_663) }
}

fn records(memory: &mut Memory, call: &Call) -> Result<Value, i64> {
    allowed(memory, call)?;
    match call.method.as_str() {
        "GET" => Ok(success(json!({
            "items": memory.records, "total": memory.records.len(), "has_more": false,
        }))),
        "POST" => create(memory, call),
        _ => Err(403),
    }
}

fn create(memory: &mut Memory, call: &Call) -> Result<Value, i64> {
    let fields = call.json.as_ref().and_then(|body| body.get("fields")?.as_object());
    let fields = fields.ok_or(99_992_402)?;
    check(fields)?;
    let client_token = call.parameter("client_token").map(str::to_owned);
    if client_token.as_deref().is_some_and(|token| !is_uuid4(token)) {
        return Err(99_992_402);
    }
    let made = client_token.as_ref().and_then(|token| memory.made.get(token)).copied();
    let place = made.unwrap_or_else(|| {
        let record_id = format!("rec{}", memory.records.len() + 1);
        memory.records.push(json!({"record_id": record_id, "fields": fields}));
        memory.records.len() - 1
    });
    if let Some(token) = client_token {
        memory.made.insert(token, place);
    }
    Ok(success(json!({"record": memory.records[place]})))
}

/// Creates up to a thousand records, all of them or none.
fn create_all(memory: &mut Memory, call: &Call) -> Result<Value, i64> {
    let records = call.json.as_ref().and_then(|body| body.get("records")?.as_array());
    let records = records.ok_or(99_992_402)?;
    if records.len() > BATCH {
        return Err(1_254_104);
    }
    let fields = records.iter().map(|record| record.get("fields")?.as_object());
    let fields: Vec<_> = fields.collect::<Option<_>>().ok_or(99_992_402)?;
    fields.iter().try_for_each(|fields| check(fields))?;
    let start = memory.records.len();
    let made = fields.iter().zip(start + 1..);
    let made = made.map(|(it, at)| json!({"record_id": format!("rec{at}"), "fields": it}));
    let made: Vec<Value> = made.collect();
    memory.records.extend(made.iter().cloned());
    Ok(success(json!({ "records": made })))
}

fn success(data: Value) -> Value {
    json!({"code": 0, "msg": "success", "data": data})
}

fn check(fields: &Map<String, Value>) -> Result<(), i64> {
    for (name, value) in fields {
        let column = COLUMNS.iter().find(|(column, _)| column == name);
        let (_, is_number) = column.ok_or(1_254_045)?;
        match (name.as_str(), value) {
            ("日期", value) if value.as_i64().is_none() => return Err(1_254_064),
            (_, value) if value.is_number() != *is_number => return Err(1_254_015),
            _ => {}
        }
    }
    Ok(())
}

fn is_uuid4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_hex = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hex && lengths == [8, 4, 4, 4, 12] && parts[2].starts_with('4')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Call, Feishu, records, token};

    const UUID: &str = "0f6a3c1e-1111-4222-8333-444455556666";

    fn token_of(feishu: &Feishu, secret: &str) -> Result<Value, i64> {
        let body = json!({"app_id": "cli", "app_secret": secret});
        token(&mut feishu.lock(), &Call::sample("POST", "/", &body))
    }

    fn post(
        feishu: &Feishu,
        token: &str,
        client_token: &str,
        fields: &Value,
    ) -> Result<Value, i64> {
        let mut call = Call::sample("POST", "/", &json!({ "fields": fields }));
        call.headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        call.query.push(("client_token".to_owned(), client_token.to_owned()));
        records(&mut feishu.lock(), &call)
    }

    #[test]
    fn a_token_with_enough_lifetime_is_issued_again() {
        let feishu = Feishu::default();
        let first = token_of(&feishu, "s").unwrap();
        assert_eq!(first["tenant_access_token"], "t-standin-1");
        assert_eq!(first["expire"], 7_200);
        assert_eq!(token_of(&feishu, "s").unwrap()["tenant_access_token"], "t-standin-1");
        feishu.revoke_tokens();
        assert_eq!(post(&feishu, "t-standin-1", UUID, &json!({})), Err(99_991_663));
        assert_eq!(token_of(&feishu, "s").unwrap()["tenant_access_token"], "t-standin-2");
        assert_eq!(token_of(&feishu, "bad-secret"), Err(10_014));
        assert_eq!(token_of(&feishu, ""), Err(10_003));
    }

    #[test]
    fn one_client_token_creates_one_record() {
        let feishu = Feishu::default();
        let token = token_of(&feishu, "s").unwrap()["tenant_access_token"].clone();
        let token = token.as_str().unwrap();
        let fields = json!({"备注": "打车", "金额": 20, "日期": 1_736_784_000_000_i64});
        let first = post(&feishu, token, UUID, &fields).unwrap();
        assert_eq!(first["data"]["record"], json!({"record_id": "rec1", "fields": fields}));
        assert_eq!(post(&feishu, token, UUID, &fields).unwrap(), first);
        let other = "0f6a3c1e-1111-4222-8333-444455556667";
        assert_eq!(
            post(&feishu, token, other, &fields).unwrap()["data"]["record"]["record_id"],
            "rec2"
        );
        assert_eq!(feishu.records().len(), 2);
        for (client_token, fields, code) in [
            ("no-uuid", json!({}), 99_992_402),
            (UUID, json!({"其他": 1}), 1_254_045),
            (UUID, json!({"金额": "20"}), 1_254_015),
            (UUID, json!({"日期": "2025-01-14"}), 1_254_064),
        ] {
            assert_eq!(post(&feishu, token, client_token, &fields), Err(code), "{fields}");
        }
        assert_eq!(post(&feishu, "", UUID, &fields), Err(99_991_661));
    }
}
