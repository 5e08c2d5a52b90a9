//! Which security a name means. The app's own table is asked first, then Massive, then a light
//! model; nobody is asked twice for the same name, and nobody's failure fails the graph.

mod ai;
mod local;
mod massive;
mod name;

use std::collections::HashMap;

use wattle_plugin::prelude::{Failure, log};

use crate::ticker;

/// Results asked for; the first counts.
const RESULTS: u32 = 3;

/// A security that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Security {
    pub(crate) ticker: String,
    /// The Chinese name, or the English one if there is none.
    pub(crate) name: String,
    /// The currency that the service named.
    pub(crate) currency: Option<String>,
}

impl Security {
    /// A result of a service; nothing if it has no ticker.
    fn from_service(
        ticker: &str,
        names: [Option<&str>; 2],
        currency: Option<String>,
    ) -> Option<Self> {
        let ticker = ticker::normalize(ticker);
        let name = names.into_iter().flatten().map(str::trim).find(|name| !name.is_empty());
        let is_ticker = !ticker.is_empty() && ticker != crate::state::UNKNOWN_TICKER;
        is_ticker.then(|| Self { ticker, name: name.unwrap_or_default().to_owned(), currency })
    }
}

/// What was found, and whether the market data service could be asked.
#[derive(Debug, Default)]
pub(crate) struct Found {
    securities: HashMap<String, Security>,
    pub(crate) service_failed: bool,
}

impl Found {
    pub(crate) fn get(&self, query: &str) -> Option<&Security> {
        self.securities.get(query)
    }
}

/// Looks up names or tickers, each distinct one once.
pub(crate) fn look_up(queries: &[String]) -> Result<Found, Failure> {
    let mut found = Found::default();
    let mut open = distinct(queries);
    let table = local::Table::read();
    open.retain(|query| {
        let hit = table.find(query);
        hit.map(|security| found.securities.insert(query.clone(), security)).is_none()
    });
    if open.is_empty() {
        return Ok(found);
    }
    for (query, answer) in open.clone().into_iter().zip(massive::search(&open)?) {
        match answer {
            Ok(hit) => found.securities.extend(hit.map(|security| (query, security))),
            Err(failure) => {
                log::warn!("look up `{query}` at the market data service: {failure}");
                found.service_failed = true;
            }
        }
    }
    open.retain(|query| found.get(query).is_none());
    for (query, hit) in open.clone().into_iter().zip(ai::search(&open)) {
        found.securities.extend(hit.map(|security| (query, security)));
    }
    Ok(found)
}

fn distinct(queries: &[String]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for query in queries {
        if !query.is_empty() && !seen.contains(query) {
            seen.push(query.clone());
        }
    }
    seen
}
