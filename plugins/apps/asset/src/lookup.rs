//! Finds the security that a name or a ticker means: in the app's table, then with Massive, then
//! with a light model.
//!
//! This file decides which security a row has, and whether the user should check it. `search` asks
//! the three sources: `local` (the table), `massive` and `ai`. `name` compares names of companies.

mod ai;
mod local;
mod massive;
mod name;
mod search;
mod security;

use wattle_plugin::prelude::Failure;

use self::search::{Query, Search};
use self::security::Security;
use crate::ticker::Given;

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
    /// The name means another security. The given ticker is kept, because a source lists it or
    /// could not be asked.
    Conflict,
    /// No source confirms the ticker. It is kept.
    Unverified,
    /// The text is not certainly a ticker, or no source lists it. The security is the one that the
    /// name means, or the one that a search for the text found.
    Guessed,
    /// The text is words for which no source has a security.
    Unread,
}

/// Resolves the security of each row, in the order of the rows. The second value is true if a
/// request to the market data service failed.
///
/// A row gets its result in the first of these passes that has one:
///
/// 1. The app's table is searched for the given ticker ([`listed`]).
/// 2. All sources are searched for the name ([`named`]).
/// 3. All sources are searched for the given ticker, if the name means no security or another one
///    ([`by_ticker`]).
pub(crate) fn resolve(subjects: &[Subject<'_>]) -> Result<(Vec<Resolved>, bool), Failure> {
    let mut search = Search::new();
    let first = |subject| (subject, listed(&search.table, subject));
    let mut rows: Vec<(&Subject<'_>, Option<Resolved>)> = subjects.iter().map(first).collect();

    search.look_up(queries(&rows, |subject| Query::text(subject.name)))?;
    for (subject, resolved) in rows.iter_mut().filter(|(_, resolved)| resolved.is_none()) {
        let found = search.of_text(subject.name);
        *resolved = found.and_then(|security| named(&search.table, subject, security));
    }

    let tickers = queries(&rows, |subject| ticker_query(&search.table, subject));
    search.look_up(tickers)?;
    let last = |(subject, resolved): (&Subject<'_>, Option<Resolved>)| {
        resolved.unwrap_or_else(|| by_ticker(&search, subject))
    };
    Ok((rows.into_iter().map(last).collect(), search.service_failed))
}

/// Returns a query for each row without a result.
fn queries(
    rows: &[(&Subject<'_>, Option<Resolved>)],
    query: impl Fn(&Subject<'_>) -> Query,
) -> Vec<Query> {
    let open = rows.iter().filter(|(_, resolved)| resolved.is_none());
    open.map(|(subject, _)| query(subject)).collect()
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

/// Resolves a row to the security that its name means. Returns `None` if the row has a ticker of
/// another security, which the sources have to confirm.
fn named(table: &local::Table, subject: &Subject<'_>, found: &Security) -> Option<Resolved> {
    let is_dropped = match table.given(subject.ticker) {
        Given::Whole(given) if !found.is(&given) => return None,
        Given::Other(given) if !found.is(&given) => return Some(kept(given, Doubt::Unverified)),
        Given::Number(given) | Given::Unsure(given) => !found.is(&given),
        Given::Name => !is_company(table, subject, found),
        Given::Whole(_) | Given::Other(_) | Given::None => false,
    };
    Some(taken(found, is_dropped.then_some(Doubt::Guessed)))
}

/// Returns true if the words that were given as the ticker of a row mean the company of the
/// security that its name means.
fn is_company(table: &local::Table, subject: &Subject<'_>, found: &Security) -> bool {
    let given = name::company(subject.ticker);
    let mut names = [subject.name, found.name.as_str()].into_iter();
    names.any(|known| !known.is_empty() && name::company(known) == given)
        || table
            .find(subject.ticker)
            .is_some_and(|meant| table.has_company(&found.ticker, &meant.name))
}

/// Returns the query for the text that was given as the ticker of a row.
fn ticker_query(table: &local::Table, subject: &Subject<'_>) -> Query {
    match table.given(subject.ticker) {
        Given::Whole(ticker) => Query { text: ticker, is_ticker: true },
        given => Query::text(&given.code().unwrap_or_else(|| subject.ticker.to_owned())),
    }
}

/// Resolves a row after the sources were searched for its given ticker.
fn by_ticker(search: &Search, subject: &Subject<'_>) -> Resolved {
    let query = ticker_query(&search.table, subject);
    match search.of_text(subject.name) {
        Some(named) if query.is_ticker => contested(search, query, named),
        _ => coded(search.table.given(subject.ticker), search.of_query(&query)),
    }
}

/// Resolves a row whose ticker and name mean different securities. A ticker that no source lists
/// yields to the one of the name.
fn contested(search: &Search, ticker: Query, named: &Security) -> Resolved {
    match search.of_query(&ticker) {
        Some(listed) => taken(listed, Some(Doubt::Conflict)),
        None if search.is_complete(&ticker) => taken(named, Some(Doubt::Guessed)),
        None => kept(ticker.text, Doubt::Conflict),
    }
}

/// Resolves a row to the security that a search for its given ticker found. A ticker that no source
/// knows is kept without a name.
fn coded(given: Given, found: Option<&Security>) -> Resolved {
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

#[cfg(test)]
mod tests {
    use wattle_plugin::http::Response;
    use wattle_plugin::prelude::{Completion, Failure, Value, json};
    use wattle_plugin::testing::FakeHost;

    use super::{Doubt, Resolved, Subject, resolve};

    /// Returns a host whose market data service has these listings, and whose light model has this
    /// completion.
    fn host(
        listings: Result<Value, Failure>,
        completion: Result<&'static str, Failure>,
    ) -> FakeHost {
        let body = listings.map(|listings| json!({"results": listings, "status": "OK"}));
        let response = body.map(|body| Response::new(200, body.to_string()));
        let completion = completion.map(Completion::of_text);
        FakeHost::new()
            .setting("massive_base_url", "https://api.massive.com")
            .setting("massive_secret", "MASSIVE_API_KEY")
            .http(move |_| response.clone())
            .llm(move |_| completion.clone())
    }

    /// Resolves rows of a name and a ticker.
    fn resolved(host: &FakeHost, rows: &[(&str, &str)]) -> Vec<Resolved> {
        let subjects: Vec<Subject<'_>> =
            rows.iter().map(|&(name, ticker)| Subject { name, ticker }).collect();
        host.run(|| resolve(&subjects)).unwrap().0
    }

    /// Returns the ticker and the doubt of a single row.
    fn one(host: &FakeHost, name: &str, ticker: &str) -> (String, Option<Doubt>) {
        let resolved = resolved(host, &[(name, ticker)]).remove(0);
        (resolved.security.unwrap().ticker, resolved.doubt)
    }

    #[test]
    fn s0_40_listed_ticker_is_kept_beside_the_name_of_another_company() {
        let listing = json!([{"ticker": "COKE", "name": "Coca-Cola Consolidated"}]);
        let lists = host(Ok(listing), Ok("[]"));
        assert_eq!(one(&lists, "可口可乐", "COKE"), ("COKE".to_owned(), Some(Doubt::Conflict)));
        assert!(lists.llm_requests().is_empty());
        let suggests = host(Ok(json!([])), Ok(r#"[{"ticker":"SAP.DE","currencyName":"eur"}]"#));
        let row = resolved(&suggests, &[("苹果", "SAP.DE")]).remove(0);
        assert_eq!(row.doubt, Some(Doubt::Conflict));
        assert_eq!(row.security.unwrap().currency.as_deref(), Some("eur"));
    }

    #[test]
    fn s0_40_ticker_that_no_source_lists_yields_to_the_ticker_of_the_name() {
        let other = || json!([{"ticker": "COKEX", "name": "Other"}]);
        for listings in [json!([]), other()] {
            let host = host(Ok(listings), Ok(r#"[{"ticker":"KO","name":"Coca-Cola"}]"#));
            assert_eq!(one(&host, "可口可乐", "COKE"), ("KO".to_owned(), Some(Doubt::Guessed)));
            assert_eq!(host.llm_requests().len(), 1, "both services are asked for the ticker");
        }
        let host = host(Ok(other()), Ok("[]"));
        assert_eq!(one(&host, "", "COKE"), ("COKE".to_owned(), Some(Doubt::Unverified)));
    }

    #[test]
    fn s0_40_ticker_is_kept_if_a_source_could_not_be_asked() {
        let down = || Failure::timeout("10 s");
        for (listings, completion) in
            [(Err(down()), Ok("[]")), (Ok(json!([])), Err(down())), (Ok(json!([])), Ok("不知道"))]
        {
            let host = host(listings, completion);
            let kept = ("309998.SZ".to_owned(), Some(Doubt::Conflict));
            assert_eq!(one(&host, "腾讯", "309998.SZ"), kept);
        }
    }

    #[test]
    fn s0_47_name_of_one_row_and_ticker_of_another_are_looked_up_once() {
        let host = host(Ok(json!([{"ticker": "QXZR", "name": "Quillmere"}])), Ok("[]"));
        let rows = resolved(&host, &[("QXZR", ""), ("", "QXZR"), ("苹果", "QXZR")]);
        let doubts: Vec<Option<Doubt>> = rows.iter().map(|row| row.doubt).collect();
        assert_eq!(doubts, [None, None, Some(Doubt::Conflict)]);
        assert_eq!(host.http_requests().len(), 1);
    }
}
