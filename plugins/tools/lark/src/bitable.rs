//! Records of a Feishu table, and errors of Feishu.
//!
//! Feishu reports an error by a code in the body, whatever the status. The host inserts the access
//! token, so the plugin only names it.

mod search;

use serde::Deserialize;
use serde_json::{Value, json};
use wattle_plugin::http::{Request, Response};
use wattle_plugin::prelude::{Failure, code, settings};

/// Default URL of Feishu.
const BASE_URL: &str = "https://open.feishu.cn";

/// Placeholder of the secret for which the host fetches a tenant token.
const TOKEN_SECRET: &str = "{{secret:FEISHU_TENANT_TOKEN}}";

/// Delays before retries after a conflict or a lost response, in milliseconds. More retries would
/// keep a person waiting, who can send another message instead.
const PAUSES_MS: [u32; 3] = [200, 400, 800];

/// Timeout of an exchange with Feishu, in milliseconds. Feishu usually responds within a second.
const TIMEOUT_MS: u32 = 10_000;

/// Code of a conflict: another writer changes the table at the same time.
const WRITE_CONFLICT: i64 = 1_254_291;

/// Meanings of codes, for people.
const MEANINGS: [(i64, &str); 7] = [
    (99_991_661, "缺少访问凭证，请检查应用的配置"),
    (99_991_663, "访问凭证无效，请检查应用的 App ID 和 App Secret"),
    (1_254_015, "字段类型与表格不一致，请检查表格的列"),
    (1_254_064, "日期格式不正确"),
    (1_254_104, "一次写入的记录过多"),
    (WRITE_CONFLICT, "表格正在被其他人写入，请稍后再试"),
    (403, "没有表格的编辑权限，请把应用加为表格的协作者"),
];

/// A table of Feishu.
#[derive(Debug)]
pub(crate) struct Table {
    base_url: String,
    app_token: String,
    table_id: String,
}

/// Why a request failed.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// Message for people.
    pub(crate) message: String,
    /// Code of Feishu, if it responded.
    pub(crate) code: Option<i64>,
}

/// A response of Feishu.
#[derive(Debug, Deserialize)]
struct Answer {
    code: i64,
    #[serde(default)]
    msg: String,
    #[serde(default)]
    data: Value,
}

impl Table {
    /// Returns the configured table; `None` if the settings name none.
    pub(crate) fn of_settings() -> Result<Option<Self>, Failure> {
        let (Some(app_token), Some(table_id)) =
            (settings::text("lark_app_token")?, settings::text("lark_table_id")?)
        else {
            return Ok(None);
        };
        let base_url = settings::text_or("lark_base_url", BASE_URL)?;
        let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let fits = is_id(&app_token) && is_id(&table_id);
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(fits.then_some(Self { base_url, app_token, table_id }))
    }

    /// Creates a record and returns its id. For a repeated request with the same `client_token`,
    /// Feishu keeps one record and returns its id.
    pub(crate) fn create(&self, fields: &Value, client_token: &str) -> Result<String, Refusal> {
        let data = persist(&PAUSES_MS, |pause_ms| self.send(fields, client_token, pause_ms))?;
        Ok(record_id(&data))
    }

    /// Sends a request after a delay. The host waits, since a plugin cannot.
    fn send(&self, fields: &Value, client_token: &str, pause_ms: u32) -> Result<Response, Failure> {
        self.post("records")
            .query("client_token", client_token)
            .delay_ms(pause_ms)
            .idempotency_key(client_token)
            .json(&json!({ "fields": fields }))?
            .send()
    }

    /// Creates a request for the table.
    fn post(&self, what: &str) -> Request {
        let Self { base_url, app_token, table_id } = self;
        let table = format!("{base_url}/open-apis/bitable/v1/apps/{app_token}/tables/{table_id}");
        Request::post(format!("{table}/{what}"))
            .header("authorization", format!("Bearer {TOKEN_SECRET}"))
            .timeout_ms(TIMEOUT_MS)
    }
}

/// Sends a request, and retries it after each delay if there is a conflict or no response. Returns
/// `data` of the response.
fn persist(
    pauses_ms: &[u32],
    send: impl Fn(u32) -> Result<Response, Failure>,
) -> Result<Value, Refusal> {
    let mut pauses = pauses_ms.iter();
    let mut pause_ms = 0;
    loop {
        let (again, refusal) = match send(pause_ms).and_then(|response| read(&response)) {
            Ok(answer) if answer.code == 0 => return Ok(answer.data),
            Ok(answer) => (answer.code == WRITE_CONFLICT, refused(&answer)),
            Err(failure) => (failure.retryable, unanswered(&failure)),
        };
        match pauses.next() {
            Some(next_ms) if again => pause_ms = *next_ms,
            _ => return Err(refusal),
        }
    }
}

/// Parses a response. Any status may have a code; a body without a code comes from a gateway.
fn read(response: &Response) -> Result<Answer, Failure> {
    match response.json::<Answer>() {
        Ok(answer) => Ok(answer),
        Err(_) if response.is_success() => Err(Failure::new("feishu", "the body has no `code`")),
        Err(failure) => Err(response.clone().ok().err().unwrap_or(failure)),
    }
}

fn record_id(data: &Value) -> String {
    let id = data.pointer("/record/record_id").and_then(Value::as_str);
    id.unwrap_or_default().to_owned()
}

fn refused(answer: &Answer) -> Refusal {
    let meaning = MEANINGS.iter().find(|(code, _)| *code == answer.code);
    let message = match meaning {
        Some((_, meaning)) => (*meaning).to_owned(),
        None => format!("飞书返回错误：{}", answer.msg),
    };
    Refusal { message, code: Some(answer.code) }
}

/// Returns a message about what a person can do. The log has the other details.
fn unanswered(failure: &Failure) -> Refusal {
    let message = match failure.code.as_str() {
        code::DENIED => "没有访问飞书的权限，请检查授权配置",
        code::TIMEOUT => "飞书没有及时响应，请稍后再试",
        code::RATE_LIMITED => "飞书请求过于频繁，请稍后再试",
        code::UNAVAILABLE if !failure.retryable => "飞书的凭证未配置或无效",
        _ => "暂时无法连接飞书，请稍后再试",
    };
    Refusal { message: message.to_owned(), code: None }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use serde_json::{Value, json};
    use wattle_plugin::http::{Request, Response};
    use wattle_plugin::prelude::{Failure, code};
    use wattle_plugin::testing::FakeHost;

    use super::{Refusal, Table};

    fn host() -> FakeHost {
        FakeHost::new()
            .setting("lark_base_url", "http://feishu.test/")
            .setting("lark_app_token", "app1")
            .setting("lark_table_id", "tbl1")
    }

    fn create(host: &FakeHost) -> Result<String, Refusal> {
        let make = || Table::of_settings().unwrap().unwrap().create(&json!({"金额": 20}), "uuid");
        host.run(make)
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type of a script of the fake host")]
    fn answer(status: u16, document: Value) -> Result<Response, Failure> {
        Ok(Response::new(status, document.to_string()))
    }

    #[test]
    fn record_is_created_and_its_id_returned() {
        let host = host().http(|_| {
            answer(
                200,
                json!({"code": 0, "msg": "success", "data": {"record": {"record_id": "r1"}}}),
            )
        });
        assert_eq!(create(&host), Ok("r1".to_owned()));
        let request = &host.http_requests()[0];
        assert_eq!(
            request.url,
            "http://feishu.test/open-apis/bitable/v1/apps/app1/tables/tbl1/records?client_token=uuid"
        );
        assert_eq!(request.idempotency_key.as_deref(), Some("uuid"));
        let token =
            ("authorization".to_owned(), "Bearer {{secret:FEISHU_TENANT_TOKEN}}".to_owned());
        assert!(request.headers.contains(&token));
    }

    /// Creates a record at a service that responds as `script` says. The script gets the number of
    /// the request, from 1. Returns the result and the number of requests.
    fn after(
        script: impl Fn(u32) -> Result<Response, Failure> + 'static,
    ) -> (Result<String, Refusal>, u32) {
        let count = Rc::new(Cell::new(0));
        let seen = Rc::clone(&count);
        let host = host().http(move |_| {
            seen.set(seen.get() + 1);
            script(seen.get())
        });
        (create(&host), count.get())
    }

    #[test]
    fn conflicts_and_lost_responses_are_retried() {
        let made = || answer(200, json!({"code": 0, "data": {"record": {"record_id": "r"}}}));
        let conflict = || answer(200, json!({"code": 1_254_291, "msg": "Write conflict"}));
        let (made_at_last, count) = after(move |n| if n < 3 { conflict() } else { made() });
        assert_eq!((made_at_last, count), (Ok("r".to_owned()), 3));
        let (refusal, count) = after(move |_| conflict());
        assert_eq!((refusal.unwrap_err().code, count), (Some(1_254_291), 4));
        let (made_at_last, count) =
            after(move |n| if n == 1 { Err(Failure::unavailable("cut")) } else { made() });
        assert_eq!((made_at_last, count), (Ok("r".to_owned()), 2));
        assert_eq!(after(|_| answer(503, json!("busy"))).1, 4);
    }

    #[test]
    fn delays_between_retries_grow() {
        let host = host().http(|_| answer(200, json!({"code": 1_254_291, "msg": "conflict"})));
        create(&host).unwrap_err();
        let requests = host.http_requests();
        let pauses: Vec<u32> = requests.iter().map(Request::delay).collect();
        assert_eq!(pauses, [0, 200, 400, 800]);
        assert!(requests.iter().all(|request| request.idempotency_key.as_deref() == Some("uuid")));
    }

    #[test]
    fn rejections_are_not_retried_and_are_readable() {
        for (status, number, words) in [
            (200, 1_254_015, "字段类型"),
            (400, 1_254_064, "日期格式"),
            (400, 99_991_663, "App Secret"),
            (403, 403, "编辑权限"),
            (200, 7, "飞书返回错误：odd"),
        ] {
            let document = json!({"code": number, "msg": "odd"});
            let (refusal, count) = after(move |_| answer(status, document.clone()));
            let refusal = refusal.unwrap_err();
            assert!(refusal.message.contains(words), "{refusal:?}");
            assert_eq!((refusal.code, count), (Some(number), 1));
        }
        for (failure, words) in [
            (Failure::new(code::DENIED, "no"), "授权"),
            (Failure::new(code::UNAVAILABLE, "the secret is not set"), "凭证"),
        ] {
            let (refusal, count) = after(move |_| Err(failure.clone()));
            assert!(refusal.unwrap_err().message.contains(words));
            assert_eq!(count, 1);
        }
        let (refusal, _) = after(|_| Ok(Response::new(200, "<html>")));
        assert_eq!(refusal.unwrap_err().code, None);
    }

    #[test]
    fn table_requires_its_settings() {
        let table = |host: &FakeHost| host.run(Table::of_settings).unwrap();
        assert!(table(&FakeHost::new()).is_none());
        assert!(table(&host().setting("lark_table_id", "")).is_none());
        assert!(table(&host().setting("lark_app_token", "../x")).is_none());
        assert!(table(&host()).is_some());
    }
}
