//! `/api/portfolios`: lists portfolios and creates them by name.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, Request, Response, Serialize, handler, params, sql,
};
use wattle_plugin::web::{ErrorDocument, refuse, respond, status};

use crate::DATABASE;
use crate::web::not_understood;

const SELECT: &str = r#"SELECT "id", "name" FROM "Portfolio" ORDER BY "id""#;

/// Returns the existing portfolio with this name, if there is one. A double click therefore creates
/// one portfolio.
const INSERT: &str = r#"INSERT INTO "Portfolio" ("name") VALUES ($1)
    ON CONFLICT ("name") DO UPDATE SET "name" = excluded."name" RETURNING "id", "name""#;

/// A portfolio that is to be.
#[derive(Deserialize, JsonSchema)]
struct NewPortfolio {
    name: String,
}

/// A portfolio.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Portfolio {
    id: i64,
    name: String,
}

/// Lists the portfolios.
#[handler(GET, "/api/portfolios", returns = Vec<Portfolio>)]
pub(crate) fn list(_request: &Request) -> Result<Response, Failure> {
    let rows = sql::database(DATABASE).query(SELECT, params![])?.whole()?;
    Response::json(200, &rows.read_all::<Portfolio>()?)
}

/// Creates a portfolio.
#[handler(POST, "/api/portfolios", body = NewPortfolio, returns = Portfolio,
    error = ErrorDocument)]
pub(crate) fn create(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let body: NewPortfolio = request.json().map_err(|_| not_understood())?;
        let name = body.name.trim();
        if name.is_empty() {
            return Err(refuse(status::BAD_REQUEST, "组合名称不能为空"));
        }
        let made = sql::database(DATABASE).execute(INSERT, params![name])?;
        Response::json(200, &made.returned.one()?.read::<Portfolio>()?)
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, json, params, sql};
    use wattle_plugin::testing::FakeHost;

    use super::{create, list};

    fn host() -> FakeHost {
        FakeHost::new().sql(|statement| {
            let name = statement.parameters.first().cloned().unwrap_or_else(|| "长线".into());
            Ok(sql::Rows::new(["id", "name"], vec![vec![1.into(), name]]).into())
        })
    }

    #[test]
    fn portfolios_are_listed() {
        let response = host().run(|| list(&Request::new("GET", "/api/portfolios"))).unwrap();
        assert_eq!(response.json_body(), Ok(json!([{"id": 1, "name": "长线"}])));
    }

    #[test]
    fn some_of_the_portfolios_are_not_all() {
        let host = FakeHost::new().sql(|_| {
            let rows = sql::Rows::new(["id", "name"], vec![params![1, "长线"]]);
            Ok(sql::Rows { truncated: true, ..rows }.into())
        });
        let failure = host.run(|| list(&Request::new("GET", "/api/portfolios"))).unwrap_err();
        assert_eq!(failure.code, "limit");
    }

    #[test]
    fn portfolio_is_created_by_name() {
        let host = host();
        let post = |body: &str| {
            let request = Request::new("POST", "/api/portfolios").with_body(body);
            host.respond(create, &request)
        };
        assert_eq!(post(r#"{"name": " 短线 "}"#), (200, json!({"id": 1, "name": "短线"})));
        assert_eq!(post(r#"{"name": " "}"#), (400, json!({"error": "组合名称不能为空"})));
        assert_eq!(post("{}").0, 400);
        assert_eq!(host.statements().len(), 1);
        assert_eq!(host.statements()[0].parameters, params!["短线"]);
    }
}
