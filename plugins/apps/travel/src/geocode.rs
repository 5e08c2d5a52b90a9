//! Coordinates of places, from Nominatim: at most one request per second, and none for a cached
//! query.

mod cache;
mod nominatim;
mod turn;

use wattle_plugin::prelude::{Failure, clock, log};

use crate::block::Location;
use crate::geocode::cache::{CachedResult, key};
use crate::geocode::nominatim::{Answer, Nominatim};

/// Number of consecutive failures after which the service counts as down. Further requests would
/// only delay the user.
const MOST_FAILURES: u32 = 3;

/// A geocoder for one call of the tool.
pub(crate) struct Geocoder {
    service: Nominatim,
    /// Keys of queries that failed in this call. They are not cached, but not sent again either.
    failed: Vec<String>,
    failures_in_row: u32,
    stopped: bool,
}

impl Geocoder {
    /// Creates a geocoder from the settings.
    pub(crate) fn of_settings() -> Result<Self, Failure> {
        let service = Nominatim::of_settings()?;
        Ok(Self { service, failed: Vec::new(), failures_in_row: 0, stopped: false })
    }

    /// Returns the coordinates of a query; `None` if it finds nothing or the service is not
    /// available.
    ///
    /// # Errors
    ///
    /// Returns failures of the database, without which the time of the next request is unknown, and
    /// the failures `cancelled` and `denied` of the service.
    pub(crate) fn locate(&mut self, query: &str) -> Result<Option<Location>, Failure> {
        let key = key(query);
        if key.is_empty() || self.failed.contains(&key) {
            return Ok(None);
        }
        match cache::get(&key, clock::now_ms())? {
            Some(CachedResult::Place(location)) => return Ok(Some(location)),
            Some(CachedResult::NotFound) => return Ok(None),
            None => {}
        }
        if self.stopped {
            return Ok(None);
        }
        let Some(delay_ms) = turn::take(clock::now_ms(), self.service.interval_ms)? else {
            self.stop("too many other requests wait for the geocoder");
            return Ok(None);
        };
        match self.service.ask(query, delay_ms)? {
            Answer::Found(location) => {
                self.failures_in_row = 0;
                cache::put(&key, Some(location), clock::now_ms())?;
                return Ok(Some(location));
            }
            Answer::Nothing => {
                self.failures_in_row = 0;
                cache::put(&key, None, clock::now_ms())?;
            }
            Answer::Refused(reason) => self.stop(&reason),
            Answer::Failed(reason) => self.fail(key, query, &reason),
        }
        Ok(None)
    }

    fn fail(&mut self, key: String, query: &str, reason: &str) {
        log::warn!("find coordinates of `{query}`: {reason}");
        self.failed.push(key);
        self.failures_in_row += 1;
        if self.failures_in_row >= MOST_FAILURES {
            self.stop("the geocoder is out of order");
        }
    }

    fn stop(&mut self, reason: &str) {
        log::warn!("find coordinates: the rest is left out: {reason}");
        self.stopped = true;
    }
}

#[cfg(test)]
mod tests;
