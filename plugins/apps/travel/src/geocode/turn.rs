//! Turns at the geocoder. The whole host may ask it once a second, so every request takes a turn in
//! the database first, whichever run, instance or tenant it is for.

use wattle_plugin::prelude::{Failure, params, sql};

use crate::DATABASE;

/// Longest wait for a turn: as long as the host holds a request back. Who would have to wait longer
/// gets none.
const LONGEST_MS: i64 = 10_000;

/// One turn after the last one, or now. A last turn that lies further ahead than anybody could have
/// taken it is from a clock that was wrong.
const TAKE: &str = "INSERT INTO geocode_turn (id, at_ms) VALUES (1, $1) \
    ON CONFLICT (id) DO UPDATE SET at_ms = CASE \
    WHEN geocode_turn.at_ms > $1 + $3 THEN $1 \
    WHEN geocode_turn.at_ms + $2 > $1 THEN geocode_turn.at_ms + $2 \
    ELSE $1 END \
    WHERE geocode_turn.at_ms > $1 + $3 OR geocode_turn.at_ms + $2 <= $1 + $3 \
    RETURNING at_ms";

/// Takes a turn: for how many milliseconds the request must be held back. `None` if too many
/// others wait.
pub(super) fn take(now_ms: i64, interval_ms: u32) -> Result<Option<u32>, Failure> {
    let values = params![now_ms, interval_ms, LONGEST_MS];
    let taken = sql::database(DATABASE).execute(TAKE, values)?;
    let Some(row) = taken.returned.first() else { return Ok(None) };
    let at_ms: i64 = row.get("at_ms")?;
    // The statement grants no turn that lies further ahead than a `u32` reaches.
    Ok(Some(u32::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0)))
}
