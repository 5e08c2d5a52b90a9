//! The cache of geocoder results, including queries that found nothing.

use wattle_plugin::prelude::{Failure, params, sql};

use crate::DATABASE;
use crate::block::Location;
use crate::session::plain;

/// Time for which a place is cached. Places seldom move.
const FOUND_MS: i64 = 90 * DAY_MS;

/// Time for which the absence of a place is cached. Maps change every day.
const NOT_FOUND_MS: i64 = DAY_MS;

const DAY_MS: i64 = 86_400_000;

const GET: &str = "SELECT lat, lng, found, fetched_ms FROM geocode_cache WHERE query = $1";

const PUT: &str = "INSERT INTO geocode_cache (query, lat, lng, found, fetched_ms) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (query) DO UPDATE SET lat = excluded.lat, \
    lng = excluded.lng, found = excluded.found, fetched_ms = excluded.fetched_ms";

/// A cached result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CachedResult {
    /// The place.
    Place(Location),
    /// There is no such place.
    NotFound,
}

/// Returns the cache key of a query. The geocoder ignores case and white space.
pub(super) fn key(query: &str) -> String {
    plain(query).to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the cached result of a query, unless it has expired.
pub(super) fn get(key: &str, now_ms: i64) -> Result<Option<CachedResult>, Failure> {
    let rows = sql::database(DATABASE).query(GET, params![key])?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (found, fetched_ms): (bool, i64) = (row.get("found")?, row.get("fetched_ms")?);
    let holds_ms = if found { FOUND_MS } else { NOT_FOUND_MS };
    if now_ms.saturating_sub(fetched_ms) > holds_ms {
        return Ok(None);
    }
    let place = || Ok(CachedResult::Place(Location { lat: row.get("lat")?, lng: row.get("lng")? }));
    if found { place().map(Some) } else { Ok(Some(CachedResult::NotFound)) }
}

/// Stores a result.
pub(super) fn put(key: &str, found: Option<Location>, now_ms: i64) -> Result<(), Failure> {
    let (lat, lng) = (found.map(|it| it.lat), found.map(|it| it.lng));
    let values = params![key, lat, lng, found.is_some(), now_ms];
    sql::database(DATABASE).execute(PUT, values).map(drop)
}
