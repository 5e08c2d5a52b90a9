//! Search with the market data service Massive, which has American listings by ticker and English
//! name.

use wattle_plugin::http::{Request, Response};
use wattle_plugin::prelude::{Deserialize, Failure, Value, http, settings};

use crate::lookup::security::{RESULTS, Security};

/// Timeout of a request. It is short because the user waits, and the light model is called after a
/// failure.
const TIMEOUT_MS: u32 = 10_000;

#[derive(Deserialize)]
struct Settings {
    massive_base_url: String,
    massive_secret: String,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    results: Vec<Value>,
}

#[derive(Deserialize)]
struct Listing {
    ticker: String,
    name: Option<String>,
    currency_name: Option<String>,
}

/// Searches for several names. The host bounds the number of concurrent requests.
pub(super) fn search(
    queries: &[String],
) -> Result<Vec<Result<Option<Security>, Failure>>, Failure> {
    let settings: Settings = settings::all()?;
    let requests = queries.iter().map(|query| request(&settings, query)).collect();
    let answers = http::send_all(requests).into_iter().zip(queries);
    Ok(answers.map(|(answer, query)| best(answer?, query)).collect())
}

fn request(settings: &Settings, query: &str) -> Request {
    let base = settings.massive_base_url.trim_end_matches('/');
    Request::get(format!("{base}/v3/reference/tickers"))
        .query("search", query)
        .query("active", "true")
        .query("limit", &RESULTS.to_string())
        .query("apiKey", &format!("{{{{secret:{}}}}}", settings.massive_secret))
        .timeout_ms(TIMEOUT_MS)
}

/// Returns the listing whose ticker is the query, otherwise the first listing. Invalid listings are
/// skipped.
fn best(answer: Response, query: &str) -> Result<Option<Security>, Failure> {
    let results = answer.ok()?.json::<Answer>()?.results.into_iter();
    let listings: Vec<Listing> =
        results.filter_map(|listing| serde_json::from_value(listing).ok()).collect();
    let exact = listings.iter().find(|listing| listing.ticker.eq_ignore_ascii_case(query));
    Ok(exact.or(listings.first()).and_then(|listing| {
        let names = [listing.name.as_deref(), None];
        Security::from_service(&listing.ticker, names, listing.currency_name.clone())
    }))
}
