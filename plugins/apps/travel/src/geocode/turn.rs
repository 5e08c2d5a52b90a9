//! Rate limit of the geocoder. The whole host may send one request per second, so every request
//! first takes a turn in the database, whichever run, instance or tenant it is for.

use wattle_plugin::prelude::{Failure, params, sql};

use crate::DATABASE;

/// Maximum wait for a turn, in milliseconds: the longest time for which the host delays a request.
/// A request that would wait longer gets no turn.
const LONGEST_MS: i64 = 10_000;

/// Takes the turn after the last one, or the current time. A last turn further in the future than a
/// turn can be comes from a wrong clock, and is ignored.
const TAKE: &str = "INSERT INTO geocode_turn (id, at_ms) VALUES (1, $1) \
    ON CONFLICT (id) DO UPDATE SET at_ms = CASE \
    WHEN geocode_turn.at_ms > $1 + $3 THEN $1 \
    WHEN geocode_turn.at_ms + $2 > $1 THEN geocode_turn.at_ms + $2 \
    ELSE $1 END \
    WHERE geocode_turn.at_ms > $1 + $3 OR geocode_turn.at_ms + $2 <= $1 + $3 \
    RETURNING at_ms";

/// Takes a turn. Returns the milliseconds by which the request must be delayed; `None` if too many
/// requests wait.
pub(super) fn take(now_ms: i64, interval_ms: u32) -> Result<Option<u32>, Failure> {
    let values = params![now_ms, interval_ms, LONGEST_MS];
    let taken = sql::database(DATABASE).execute(TAKE, values)?;
    let Some(row) = taken.returned.first() else { return Ok(None) };
    let at_ms: i64 = row.get("at_ms")?;
    // The statement grants no turn further in the future than a `u32` reaches.
    Ok(Some(u32::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)))
}
