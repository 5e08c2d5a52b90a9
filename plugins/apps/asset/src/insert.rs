//! Inserts confirmed rows in one transaction.

use serde_json::Value;
use wattle_plugin::prelude::{Failure, params};
use wattle_plugin::sql::{self, Transaction};

use crate::confirm::{self, Table};
use crate::state::{ConfirmedData, Row};
use crate::{DATABASE, currency, date};

/// Action in the entries of the operation log.
const LOGGED_ACTION: &str = "asset_graph.store";

const INSERT_OPERATION: &str = r#"INSERT INTO "Operation" ("action", "price", "tradedAt", "memo",
    "ticker", "name", "quantity", "currency", "riskCategory", "portfolioId", "createdAt")
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING "id""#;

const INSERT_HOLDING: &str = r#"INSERT INTO "Holding" ("costPrice",
    "ticker", "name", "quantity", "currency", "riskCategory", "portfolioId", "createdAt")
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING "id""#;

const INSERT_LOG: &str = r#"INSERT INTO "OperationLog" ("action", "threadId", "portfolioId",
    "riskCategory", "rows", "createdAt") VALUES ($1, $2, $3, $4, $5, $6)"#;

const SELECT_PORTFOLIO: &str = r#"SELECT "id" FROM "Portfolio" WHERE "id" = $1"#;

/// Rows that one transaction inserts.
pub(crate) struct Insertion<'a> {
    pub(crate) table: Table,
    pub(crate) confirmed: &'a ConfirmedData,
    /// Date of trades whose date the user left empty.
    pub(crate) today: &'a str,
    /// Time at which the rows are created.
    pub(crate) now: &'a str,
}

impl Insertion<'_> {
    /// Inserts the rows and a log entry. Returns the ids in the order of the rows.
    pub(crate) fn execute(&self, thread_id: &str) -> Result<Vec<i64>, Failure> {
        let transaction = sql::database(DATABASE).begin()?;
        let portfolio = self.confirmed.portfolio_id;
        if transaction.query(SELECT_PORTFOLIO, params![portfolio])?.is_empty() {
            return Err(confirm::wrong(&["portfolioId".to_owned()]));
        }
        let rows = self.confirmed.rows.iter();
        let ids = rows.map(|row| self.insert(&transaction, row)).collect::<Result<_, _>>()?;
        let rows: Value = serde_json::to_value(&self.confirmed.rows)?;
        let risk = &self.confirmed.risk_category;
        let entry = params![LOGGED_ACTION, thread_id, portfolio, risk, rows, self.now];
        transaction.execute(INSERT_LOG, entry)?;
        transaction.commit()?;
        Ok(ids)
    }

    fn insert(&self, transaction: &Transaction, row: &Row) -> Result<i64, Failure> {
        let (statement, mut parameters) = match self.table {
            Table::Operation => (
                INSERT_OPERATION,
                params![row.text("action"), row.number("price"), self.day(row), memo(row)],
            ),
            Table::Holding => (INSERT_HOLDING, params![row.number("costPrice")]),
        };
        parameters.extend(params![
            row.text("ticker"),
            row.text("name"),
            row.number("quantity"),
            currency::of_row(row),
            &self.confirmed.risk_category,
            self.confirmed.portfolio_id,
            self.now,
        ]);
        transaction.execute(statement, parameters)?.returned.one()?.get("id")
    }

    /// Returns the date of a trade, which is the current date if the user left it empty.
    fn day(&self, row: &Row) -> String {
        date::normalize(row.text("tradedAt")).unwrap_or_else(|| self.today.to_owned())
    }
}

fn memo(row: &Row) -> Option<&str> {
    Some(row.text("memo")).filter(|memo| !memo.is_empty())
}
