//! `GET /api/operations` and `GET /api/holdings`: pages of the stored rows, newest first.

use serde::de::DeserializeOwned;
use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, Serialize, handler, params, sql,
};
use wattle_plugin::web::{ErrorDocument, PAGE_BYTES, refuse, respond, status};

use crate::DATABASE;
use crate::state::Action;

/// Default and maximum number of rows in a page.
const PAGE: i64 = 200;
const LARGEST_PAGE: i64 = 1_000;

/// `$1` is the portfolio, and `$2` the id before which the page begins. Negative values do not
/// filter.
const SELECT_OPERATIONS: &str = r#"SELECT "id", "ticker", "name", "action", "quantity", "price",
    "currency", "tradedAt", "memo", "riskCategory", "portfolioId", "createdAt" FROM "Operation"
    WHERE ($1 < 0 OR "portfolioId" = $1) AND ($2 < 0 OR "id" < $2)
    ORDER BY "id" DESC LIMIT $3"#;

const SELECT_HOLDINGS: &str = r#"SELECT "id", "ticker", "name", "quantity", "costPrice",
    "currency", "riskCategory", "portfolioId", "createdAt" FROM "Holding"
    WHERE ($1 < 0 OR "portfolioId" = $1) AND ($2 < 0 OR "id" < $2)
    ORDER BY "id" DESC LIMIT $3"#;

/// Parameter that does not filter: ids are positive.
const ANY: i64 = -1;

/// A page of stored rows, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{R}Page")]
struct Page<R> {
    items: Vec<R>,
    /// Value of `before` for the next page; `null` on the last page.
    next_before: Option<i64>,
}

/// A stored trade.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Operation {
    id: i64,
    ticker: String,
    name: String,
    #[schemars(with = "Action")]
    action: String,
    quantity: f64,
    price: f64,
    currency: String,
    /// A date.
    traded_at: String,
    memo: Option<String>,
    risk_category: String,
    portfolio_id: i64,
    created_at: String,
}

/// A stored holding.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Holding {
    id: i64,
    ticker: String,
    name: String,
    quantity: f64,
    cost_price: f64,
    currency: String,
    risk_category: String,
    portfolio_id: i64,
    created_at: String,
}

/// Lists trades.
#[handler(GET, "/api/operations",
    query(portfolioId: Option<i64>, before: Option<i64>, limit: Option<u32>),
    returns = Page<Operation>, error = ErrorDocument)]
pub(crate) fn operations(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || list(request, SELECT_OPERATIONS, |row: &Operation| row.id))
}

/// Lists holdings.
#[handler(GET, "/api/holdings",
    query(portfolioId: Option<i64>, before: Option<i64>, limit: Option<u32>),
    returns = Page<Holding>, error = ErrorDocument)]
pub(crate) fn holdings(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || list(request, SELECT_HOLDINGS, |row: &Holding| row.id))
}

fn list<R: DeserializeOwned + Serialize>(
    request: &Request,
    select: &str,
    id_of: impl FnOnce(&R) -> i64,
) -> Result<Response, Failure> {
    let (Some(portfolio), Some(before), Some(limit)) = (
        number(request, "portfolioId", ANY, i64::MAX),
        number(request, "before", ANY, i64::MAX),
        number(request, "limit", PAGE, LARGEST_PAGE),
    ) else {
        let why = "portfolioId、before 必须是正整数，limit 必须在 1 到 1000 之间";
        return Err(refuse(status::BAD_REQUEST, why));
    };
    let rows = sql::database(DATABASE).query(select, params![portfolio, before, limit + 1])?;
    let page = rows.page::<R>(u32::try_from(limit)?, PAGE_BYTES)?;
    let next_before = page.next_cursor(id_of);
    Response::json(200, &Page { items: page.items, next_before })
}

/// Returns a number of the query string from 1 to `most`, or `default` without one. Returns `None`
/// if the value is invalid.
fn number(request: &Request, name: &str, default: i64, most: i64) -> Option<i64> {
    match request.query(name) {
        None | Some("") => Some(default),
        Some(text) => text.parse().ok().filter(|number| (1..=most).contains(number)),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Value, json, params, sql};
    use wattle_plugin::testing::FakeHost;

    use super::{holdings, operations};

    const COLUMNS: &str =
        "id ticker name quantity costPrice currency riskCategory portfolioId createdAt";

    /// A database with three holdings.
    fn host() -> FakeHost {
        holdings_of(vec![3, 2, 1], false)
    }

    /// A database whose result has holdings with these ids.
    fn holdings_of(ids: Vec<i64>, truncated: bool) -> FakeHost {
        holdings_with_name("苹果", ids, truncated)
    }

    fn holdings_with_name(name: &str, ids: Vec<i64>, truncated: bool) -> FakeHost {
        let name = name.to_owned();
        FakeHost::new().sql(move |_| {
            let row = |id: &i64| params![*id, "AAPL", &name, 2.5, 9.0, "USD", "r", 1_i64, "t"];
            let rows = sql::Rows::new(COLUMNS.split(' '), ids.iter().map(row).collect());
            Ok(sql::Rows { truncated, ..rows }.into())
        })
    }

    fn get(host: &FakeHost, query: &[(&str, &str)]) -> (u16, Value) {
        let request = Request::new("GET", "/api/holdings");
        let request = query.iter().fold(request, |it, (name, value)| it.with_query(name, *value));
        host.respond(holdings, &request)
    }

    #[test]
    fn page_has_the_cursor_of_the_next_page() {
        let host = host();
        let (status, body) = get(&host, &[("portfolioId", "1"), ("limit", "2")]);
        assert_eq!(status, 200);
        assert_eq!(body["items"].as_array().unwrap().len(), 2);
        assert_eq!(body["nextBefore"], 2);
        assert_eq!(body["items"][0]["quantity"], 2.5);
        assert_eq!(host.statements()[0].parameters, params![1_i64, -1_i64, 3_i64]);
        let (_, whole) = get(&host, &[("limit", "3"), ("before", "9")]);
        assert_eq!(whole["nextBefore"], Value::Null);
        assert_eq!(host.statements()[1].parameters, params![-1_i64, 9_i64, 4_i64]);
    }

    #[test]
    fn truncated_result_is_not_the_last_page() {
        let (status, body) = get(&holdings_of(vec![3, 2], true), &[("limit", "3")]);
        assert_eq!((status, &body["nextBefore"]), (200, &json!(2)));
        // A single row is larger than a result.
        let host = holdings_of(Vec::new(), true);
        let request = Request::new("GET", "/api/holdings");
        assert_eq!(host.run(|| holdings(&request)).unwrap_err().code, "limit");
    }

    #[test]
    fn page_fits_into_a_response() {
        let host = holdings_with_name(&"x".repeat(3 << 20), vec![3, 2], false);
        let (status, body) = get(&host, &[]);
        assert_eq!((status, &body["nextBefore"]), (200, &json!(3)));
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        let host = host();
        for query in [("portfolioId", "x"), ("before", "0"), ("limit", "0"), ("limit", "1001")] {
            assert_eq!(get(&host, &[query]).0, 400, "{query:?}");
        }
        assert!(host.statements().is_empty());
    }

    #[test]
    fn trades_have_their_own_columns() {
        let host = FakeHost::new().sql(|statement| {
            assert!(statement.text.contains("\"tradedAt\", \"memo\""), "{}", statement.text);
            let columns = "id ticker name action quantity price currency tradedAt memo \
                riskCategory portfolioId createdAt";
            let memo = None::<&str>;
            let row = params![1, "AAPL", "苹果", "buy", 1.0, 2.0, "USD", "day", memo, "r", 1, "t"];
            Ok(sql::Rows::new(columns.split(' '), vec![row]).into())
        });
        let response = host.run(|| operations(&Request::new("GET", "/api/operations"))).unwrap();
        let item = &response.json_body().unwrap()["items"][0];
        assert_eq!((&item["action"], &item["memo"]), (&json!("buy"), &json!(null)));
    }
}
