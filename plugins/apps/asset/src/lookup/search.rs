//! The searches of one run: the app's table, then Massive, then the light model. Each query is
//! looked up once, and a failed request of a service leaves its query without a result.

use std::collections::HashMap;

use wattle_plugin::prelude::{Failure, log};

use crate::lookup::local::Table;
use crate::lookup::security::Security;
use crate::lookup::{ai, massive};

/// A query for a security.
pub(super) struct Query {
    pub(super) text: String,
    /// True for a ticker that the app's table does not have. Only a security with this very ticker
    /// is a result. The table is not searched for the text as a name, because it can be the name of
    /// another company: `COKE` is the ticker of a bottler and a name of Coca-Cola.
    pub(super) is_ticker: bool,
}

impl Query {
    /// Returns a query for a name, or for a text that is not certainly a ticker.
    pub(super) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), is_ticker: false }
    }
}

/// Result of a query at the services.
#[derive(Debug, Default)]
struct Lookup {
    security: Option<Security>,
    /// True if a request failed, so a service may know the security nevertheless.
    is_partial: bool,
}

impl Lookup {
    /// Adds the result of one service.
    fn add(&mut self, query: &str, service: &str, result: Result<Option<Security>, Failure>) {
        match result {
            Ok(security) => self.security = security,
            Err(failure) => {
                log::warn!("look up `{query}` {service}: {failure}");
                self.is_partial = true;
            }
        }
    }
}

/// The searches of one run, with their results by query.
pub(super) struct Search {
    pub(super) table: Table,
    /// Results of the app's table.
    known: HashMap<String, Security>,
    services: HashMap<String, Lookup>,
    /// True if a request to the market data service failed.
    pub(super) service_failed: bool,
}

impl Search {
    pub(super) fn new() -> Self {
        let (known, services) = (HashMap::new(), HashMap::new());
        Self { table: Table::read(), known, services, service_failed: false }
    }

    /// Looks up queries, each distinct one once.
    pub(super) fn look_up(&mut self, queries: Vec<Query>) -> Result<(), Failure> {
        let mut open: Vec<Query> = Vec::new();
        for query in queries {
            let is_open = open.iter().any(|earlier| earlier.text == query.text);
            let is_new = !is_open && !self.services.contains_key(&query.text);
            let is_wanted = is_new && !query.text.is_empty();
            if is_wanted && (query.is_ticker || !self.is_known(&query.text)) {
                open.push(query);
            }
        }
        self.ask(open)
    }

    /// Returns true if the app's table has the security of a text.
    fn is_known(&mut self, text: &str) -> bool {
        if self.known.contains_key(text) {
            return true;
        }
        let Some(security) = self.table.find(text) else { return false };
        self.known.insert(text.to_owned(), security);
        true
    }

    /// Searches the services. The light model gets only the queries that the market data service
    /// does not know.
    fn ask(&mut self, mut open: Vec<Query>) -> Result<(), Failure> {
        if open.is_empty() {
            return Ok(());
        }
        for (query, result) in open.iter().zip(massive::search(&texts(&open))?) {
            self.service_failed |= result.is_err();
            let lookup = self.services.entry(query.text.clone()).or_default();
            lookup.add(&query.text, "at the market data service", result);
        }
        open.retain(|query| self.of_query(query).is_none());
        for (query, result) in open.iter().zip(ai::search(&texts(&open))) {
            let lookup = self.services.entry(query.text.clone()).or_default();
            lookup.add(&query.text, "with the light model", result);
        }
        Ok(())
    }

    /// Returns true if every service has returned what it knows of a query.
    pub(super) fn is_complete(&self, query: &Query) -> bool {
        self.services.get(&query.text).is_some_and(|lookup| !lookup.is_partial)
    }

    /// Returns the result of a query.
    pub(super) fn of_query(&self, query: &Query) -> Option<&Security> {
        if query.is_ticker {
            self.of_service(&query.text).filter(|security| security.is(&query.text))
        } else {
            self.of_text(&query.text)
        }
    }

    pub(super) fn of_text(&self, text: &str) -> Option<&Security> {
        self.known.get(text).or_else(|| self.of_service(text))
    }

    fn of_service(&self, text: &str) -> Option<&Security> {
        self.services.get(text)?.security.as_ref()
    }
}

fn texts(queries: &[Query]) -> Vec<String> {
    queries.iter().map(|query| query.text.clone()).collect()
}
