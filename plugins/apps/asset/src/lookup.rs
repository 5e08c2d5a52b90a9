//! Finds the security that a name or a ticker means: in the app's table, then with Massive, then
//! with a light model. Equal names are looked up once, and a failed request does not fail the
//! graph.

mod ai;
mod local;
mod massive;
mod name;

use std::collections::HashMap;

use wattle_plugin::prelude::{Failure, log};

use crate::ticker::{self, Given};

/// Maximum number of results of a search.
const RESULTS: u32 = 3;

/// A security. If no source knows it, only its ticker is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Security {
    pub(crate) ticker: String,
    /// Chinese name, otherwise the English one, otherwise empty.
    pub(crate) name: String,
    /// Currency that a service named.
    pub(crate) currency: Option<String>,
}

impl Security {
    /// Converts a result of a service. Returns `None` if it has no ticker, or words in place of a
    /// ticker.
    fn from_service(
        ticker: &str,
        names: [Option<&str>; 2],
        currency: Option<String>,
    ) -> Option<Self> {
        let ticker = ticker::given(ticker).code()?;
        let name = names.into_iter().flatten().map(str::trim).find(|name| !name.is_empty());
        Some(Self { ticker, name: name.unwrap_or_default().to_owned(), currency })
    }

    /// Returns true if the security has this ticker, ignoring case.
    fn is(&self, ticker: &str) -> bool {
        self.ticker.eq_ignore_ascii_case(ticker)
    }
}

/// Name and ticker of a row, as they were extracted.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'a str,
    pub(crate) ticker: &'a str,
}

/// Result of the lookup of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) security: Option<Security>,
    /// Reason for which the user should check the row.
    pub(crate) doubt: Option<Doubt>,
}

/// Reason for which a given ticker may be wrong or misunderstood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The name means another security. The given ticker is kept.
    Conflict,
    /// No source confirms the ticker. It is kept.
    Unverified,
    /// The text is not certainly a ticker. The security is the one that the name means, or the one
    /// that a search for the text found.
    Guessed,
    /// The text is words for which no source has a security.
    Unread,
}

/// Resolves the security of each row, in the order of the rows. The second value is true if a
/// request to the market data service failed.
///
/// A given ticker is kept in its usual form. The app's table is searched for it first. All sources
/// are then searched for the names of the remaining rows, and last for the texts that were given as
/// their tickers.
pub(crate) fn resolve(subjects: &[Subject<'_>]) -> Result<(Vec<Resolved>, bool), Failure> {
    let table = local::Table::read();
    let mut resolved: Vec<Option<Resolved>> =
        subjects.iter().map(|subject| listed(&table, subject)).collect();
    let open = |resolved: &[Option<Resolved>]| {
        let open = subjects.iter().zip(resolved).filter(|(_, resolved)| resolved.is_none());
        open.map(|(subject, _)| subject).collect::<Vec<_>>()
    };
    let names = open(&resolved).iter().map(|subject| subject.name.to_owned()).collect::<Vec<_>>();
    let by_name = look_up(&table, &names)?;
    for (subject, slot) in subjects.iter().zip(&mut resolved).filter(|(_, slot)| slot.is_none()) {
        *slot = by_name.get(subject.name).map(|security| named(&table, subject, security));
    }
    let usual = |subject: &Subject<'_>| ticker::normalize(subject.ticker);
    let tickers = open(&resolved).into_iter().map(usual).collect::<Vec<_>>();
    let by_ticker = look_up(&table, &tickers)?;
    let resolved = resolved.into_iter().zip(subjects);
    let resolved = resolved.map(|(known, subject)| {
        known.unwrap_or_else(|| coded(&table, subject, by_ticker.get(&usual(subject))))
    });
    Ok((resolved.collect(), by_name.service_failed || by_ticker.service_failed))
}

/// Resolves a row whose given ticker is in the app's table. A short number counts only if the table
/// has it for the company that the name means.
fn listed(table: &local::Table, subject: &Subject<'_>) -> Option<Resolved> {
    let ticker = match table.given(subject.ticker) {
        Given::Whole(ticker) => ticker,
        Given::Number(ticker) if table.has_company(&ticker, subject.name) => ticker,
        _ => return None,
    };
    let security = table.listed(&ticker)?;
    let doubt = (!table.agree(&ticker, subject.name)).then_some(Doubt::Conflict);
    Some(Resolved { security: Some(security), doubt })
}

/// Resolves a row to the security that its name means. The given ticker of another security is
/// kept, unless it is uncertain.
fn named(table: &local::Table, subject: &Subject<'_>, found: &Security) -> Resolved {
    match table.given(subject.ticker) {
        Given::Whole(given) if !found.is(&given) => kept(given, Doubt::Conflict),
        Given::Other(given) if !found.is(&given) => kept(given, Doubt::Unverified),
        Given::Number(given) | Given::Unsure(given) if !found.is(&given) => {
            taken(found, Some(Doubt::Guessed))
        }
        _ => taken(found, None),
    }
}

/// Resolves a row to the security that a search for its given ticker found. A ticker that no source
/// knows is kept without a name.
fn coded(table: &local::Table, subject: &Subject<'_>, found: Option<&Security>) -> Resolved {
    let given = table.given(subject.ticker);
    let (is_words, is_unsure) = (given == Given::Name, matches!(given, Given::Unsure(_)));
    match (given.code(), found) {
        (Some(code), Some(found)) if found.is(&code) => taken(found, None),
        (Some(_), Some(found)) if is_unsure => taken(found, Some(Doubt::Guessed)),
        (Some(code), _) => kept(code, Doubt::Unverified),
        (None, Some(found)) => taken(found, None),
        (None, None) => Resolved { security: None, doubt: is_words.then_some(Doubt::Unread) },
    }
}

fn taken(security: &Security, doubt: Option<Doubt>) -> Resolved {
    Resolved { security: Some(security.clone()), doubt }
}

fn kept(ticker: String, doubt: Doubt) -> Resolved {
    let security = Security { ticker, name: String::new(), currency: None };
    Resolved { security: Some(security), doubt: Some(doubt) }
}

/// Securities by query, and whether a request to the market data service failed.
#[derive(Debug, Default)]
struct Found {
    securities: HashMap<String, Security>,
    service_failed: bool,
}

impl Found {
    fn get(&self, query: &str) -> Option<&Security> {
        self.securities.get(query)
    }
}

/// Looks up names or tickers, each distinct one once.
fn look_up(table: &local::Table, queries: &[String]) -> Result<Found, Failure> {
    let mut found = Found::default();
    let mut open = distinct(queries);
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
