//! Which errors are retried, and the backoff before a retry.
//!
//! The rules are those of the official clients. A request is retried after status 408, 409, 429 or
//! 5xx and after a broken connection, and after the errors of Groq for an unreadable tool call and
//! for missing capacity; the header `x-should-retry` overrides this rule. The header
//! `retry-after-ms` or `retry-after` sets the delay. Without these headers the delay doubles from
//! [`INITIAL_BACKOFF`] to [`MAX_BACKOFF`], less a jitter of up to a quarter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// Backoff before the first retry.
pub(crate) const INITIAL_BACKOFF: Duration = Duration::from_millis(500);

/// Maximum backoff, unless the provider requests a longer delay.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// Maximum delay that a provider may request. A longer delay fails the attempt at once: a fallback
/// or a later attempt of the node is better than a guest that holds its memory for minutes.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_mins(1);

/// The retry policy of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The error is permanent.
    Never,
    /// The error is retried after the backoff.
    BackOff,
    /// The error is retried after the delay that the provider requests.
    After(Duration),
}

/// Computes the backoff of retries. The jitter is derived from a counter, so that calls of one
/// process that fail together are retried at different times without a source of randomness.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    draws: AtomicU64,
}

impl Backoff {
    /// Returns the delay before the next try after `tried` retries, or `None` if the error is not
    /// retried.
    pub(crate) fn delay(&self, retry: Retry, tried: u32, allowed: u32) -> Option<Duration> {
        if tried >= allowed {
            return None;
        }
        match retry {
            Retry::Never => None,
            Retry::After(pause) => (pause <= MAX_RETRY_AFTER).then_some(pause),
            Retry::BackOff => {
                let full = INITIAL_BACKOFF.saturating_mul(1 << tried.min(16)).min(MAX_BACKOFF);
                Some(full.mul_f64(1.0 - self.jitter()))
            }
        }
    }

    /// Returns a fraction between 0 and a quarter.
    fn jitter(&self) -> f64 {
        let drawn = self.draws.fetch_add(1, Ordering::Relaxed);
        // The finalizer of SplitMix64 maps neighboring counters to unrelated fractions.
        let mut mixed = drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 27;
        (mixed % 1024) as f64 / 4096.0
    }
}

/// Returns the delay that a provider requests: in a header, or in the body in Google's format.
pub(crate) fn retry_after(headers: &HeaderMap, body: &Value) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(pause) = milliseconds.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok()) {
        return Some(pause);
    }
    text(RETRY_AFTER.as_str())
        .and_then(|after| seconds(after).or_else(|| between_dates(after, text(DATE.as_str())?)))
        .or_else(|| google_delay(body))
}

/// Returns the value of `x-should-retry`; `None` if the header is missing or has another value.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.to_str().ok()? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// Returns the time from the HTTP date `date` to the HTTP date `after`. `date` is the `date` header
/// of the response, which is used in place of the local clock, because the local clock may be
/// wrong.
fn between_dates(after: &str, date: &str) -> Option<Duration> {
    let parse = |text: &str| -> Option<Timestamp> {
        rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
    };
    let pause = parse(after)?.duration_since(parse(date)?);
    Some(Duration::try_from(pause).unwrap_or_default())
}

/// Returns the delay of a `google.rpc.RetryInfo` in the details of an error:
/// `{"retryDelay": "17s"}`.
fn google_delay(body: &Value) -> Option<Duration> {
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn backoff_doubles_up_to_a_maximum_less_a_jitter() {
        let pauses = Backoff::default();
        for (tried, full) in [(0, 500), (1, 1000), (2, 2000), (3, 4000), (4, 8000), (9, 8000)] {
            let pause = pauses.delay(Retry::BackOff, tried, 10).unwrap().as_millis();
            assert!((full * 3 / 4..=full).contains(&pause), "{tried}: {pause}");
        }
        assert_eq!(pauses.delay(Retry::BackOff, 2, 2), None);
        assert_eq!(pauses.delay(Retry::Never, 0, 2), None);
        assert_eq!(pauses.delay(Retry::After(Duration::from_secs(61)), 0, 2), None);
        assert_eq!(pauses.delay(Retry::After(Duration::ZERO), 0, 2), Some(Duration::ZERO));
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        let cases = [
            (headers(&[("retry-after-ms", "250"), ("retry-after", "9")]), Some(250)),
            (headers(&[("retry-after", "1.5")]), Some(1500)),
            (
                headers(&[
                    ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"),
                    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ]),
                Some(3000),
            ),
            (
                headers(&[
                    ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ("date", "Sun, 06 Nov 1994 08:49:40 GMT"),
                ]),
                Some(0),
            ),
            (headers(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")]), None),
            (headers(&[("retry-after", "-5")]), None),
            (headers(&[("retry-after", "soon")]), None),
        ];
        for (headers, expected) in cases {
            let pause = retry_after(&headers, &Value::Null);
            assert_eq!(pause, expected.map(Duration::from_millis), "{headers:?}");
        }
        let body = json!({ "error": { "details": [{}, { "retryDelay": "17s" }] } });
        assert_eq!(retry_after(&HeaderMap::new(), &body), Some(Duration::from_secs(17)));
    }
}
