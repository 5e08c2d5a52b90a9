//! `GET /api/bookings`: the bookings of a month, with sums by day and by category.

use serde::{Deserialize, Serialize};
use wattle_plugin::prelude::{
    Failure, JsonSchema, Request, Response, code, handler, json, log, tools,
};
use wattle_plugin::web::{ErrorDocument, refuse, respond, status};

use crate::book::{Book, Row};
use crate::calendar::{Calendar, Month};

/// Tool that reads the table.
const LIST: &str = "lark/listExpensesFromLark";

/// Output of the tool.
#[derive(Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
enum Answer {
    Success { data: Data },
    Error { message: String },
}

#[derive(Deserialize)]
struct Data {
    bookings: Vec<Row>,
    truncated: bool,
}

/// A month of the table.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MonthDocument {
    #[serde(flatten)]
    book: Book,
    /// The month as `2025-01`.
    month: String,
    /// Current date as `2025-01-15`.
    today: String,
    /// IANA name of the time zone in which days begin.
    time_zone: String,
    /// True if the table has more rows than were read.
    truncated: bool,
}

/// Responds with the bookings of `month`, such as `2025-01`, by default of the current month.
#[handler(GET, "/api/bookings", query(month: Option<String>), returns = MonthDocument,
    error = ErrorDocument)]
pub(crate) fn bookings(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let wrong = || refuse(status::BAD_REQUEST, "month 的格式应为 YYYY-MM");
        let month = request.query("month").map(|text| Month::parse(text).ok_or_else(wrong));
        let calendar = Calendar::new(month.transpose()?)?;
        let data = read(&calendar).map_err(|why| refuse(status::BAD_GATEWAY, why))?;
        let body = MonthDocument {
            book: Book::new(&calendar, data.bookings),
            month: calendar.month.text(),
            today: calendar.today,
            time_zone: calendar.zone,
            truncated: data.truncated,
        };
        Ok(Response::json(200, &body)?.with_header("cache-control", "no-store"))
    })
}

/// Reads the rows of the month. The error is a message for users.
fn read(calendar: &Calendar) -> Result<Data, String> {
    let (from, to) = calendar.period();
    let output = tools::Call::new(LIST, json!({ "from": from, "to": to })).call();
    let answer = output.and_then(|output| output.structured::<Answer>());
    match answer.map_err(|failure| unread(&failure))? {
        Answer::Success { data } => Ok(data),
        Answer::Error { message } => Err(message),
    }
}

fn unread(failure: &Failure) -> String {
    log::warn!("read the bookings: {failure}");
    let message = match failure.code.as_str() {
        code::DENIED | code::NOT_FOUND => "没有读取账目的权限，请检查授权配置",
        _ => "账目暂时无法读取，请稍后再试",
    };
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Failure, Request, ToolOutput, Value, code, json};
    use wattle_plugin::testing::FakeHost;

    use super::{LIST, bookings};

    const NOW_MS: i64 = 1_736_908_245_123;

    fn host(answer: impl Fn() -> Result<ToolOutput, Failure> + 'static) -> FakeHost {
        let host = FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800);
        host.tool(LIST, move |_| answer())
    }

    fn get(host: &FakeHost, month: Option<&str>) -> (u16, Value) {
        let request = Request::new("GET", "/api/bookings");
        let request = month.into_iter().fold(request, |it, month| it.with_query("month", month));
        host.respond(bookings, &request)
    }

    fn one() -> Result<ToolOutput, Failure> {
        let row = json!({"id": "rec1", "remark": "打车", "category": "交通", "amount": 20,
            "type": "consume", "date": 1_736_784_000_000_i64});
        let data = json!({"bookings": [row], "truncated": false});
        ToolOutput::json(&json!({"status": "success", "message": "共 1 笔", "data": data}))
    }

    #[test]
    fn month_is_read_and_summed_up() {
        let host = host(one);
        let (status, body) = get(&host, None);
        assert_eq!(status, 200, "{body}");
        assert_eq!(
            (&body["month"], &body["today"], &body["timeZone"], &body["truncated"]),
            (&json!("2025-01"), &json!("2025-01-15"), &json!("Asia/Shanghai"), &json!(false))
        );
        let booking = json!({"id": "rec1", "date": "2025-01-14", "dateMs": 1_736_784_000_000_i64,
            "remark": "打车", "category": "交通", "amount": 20.0, "kind": "consume"});
        assert_eq!(body["bookings"], json!([booking]));
        let period = json!({"from": 1_735_660_800_000_i64, "to": 1_738_339_200_000_i64});
        assert_eq!(host.tool_calls()[0].arguments, period);
        let (_, body) = get(&host, Some("2024-12"));
        assert_eq!((&body["month"], &body["bookings"]), (&json!("2024-12"), &json!([])));
    }

    #[test]
    fn invalid_months_are_rejected() {
        let host = host(one);
        for month in ["2025-1", "", "x"] {
            assert_eq!(get(&host, Some(month)).0, 400, "{month}");
        }
        assert!(host.tool_calls().is_empty());
    }

    #[test]
    fn unreadable_table_is_a_bad_gateway() {
        let refused = || ToolOutput::json(&json!({"status": "error", "message": "没有配置"}));
        let (status, body) = get(&host(refused), None);
        assert_eq!((status, body), (502, json!({"error": "没有配置"})));
        for (failure, words) in
            [(Failure::new(code::DENIED, "no"), "权限"), (Failure::unavailable("down"), "稍后再试")]
        {
            let (status, body) = get(&host(move || Err(failure.clone())), None);
            assert_eq!(status, 502);
            assert!(body["error"].as_str().unwrap().contains(words), "{body}");
        }
        let odd = || ToolOutput::json(&json!({"status": "success", "data": {"bookings": 7}}));
        assert_eq!(get(&host(odd), None).0, 502);
    }
}
