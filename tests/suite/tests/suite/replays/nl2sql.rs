//! Tests of statements as models write them: the expected result, and that no other statement is
//! executed instead.
//!
//! `say` is the question. The case provides the completions for the role `sql`.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::LeftOut;
use wattle_kit::postgres::Postgres;
use wattle_kit::replay::Case;
use wattle_suite::nl2sql::CHAT;
use wattle_suite::server::Setup;

use super::tenant::Door;
use crate::asset::postgres::database;

const DOOR: Door = Door { path: CHAT, route: "sql", body };

fn body(case: &Case) -> Value {
    json!({ "message": case.key("say") })
}

#[tokio::test]
async fn statements_of_models() {
    DOOR.check("nl2sql", Setup::nl2sql().await).await;
}

/// Prepares the application on new databases.
async fn on_postgres() -> Result<(Setup, Postgres), LeftOut> {
    let (postgres, own) = database()?;
    let made = tokio::task::spawn_blocking(move || {
        let business = postgres.create_database("business").unwrap();
        (postgres, business)
    });
    let (postgres, business) = made.await.unwrap();
    Ok((Setup::nl2sql_on(&own, &business).await, postgres))
}

#[tokio::test]
async fn statements_of_models_on_postgres() {
    let (setup, _postgres) = need!(on_postgres().await);
    DOOR.check("nl2sql-postgres", setup).await;
}
