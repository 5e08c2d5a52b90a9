//! Durations as text, such as `60s` and `500ms`; for `#[serde(with = "duration")]`.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
    if value.subsec_millis() == 0 {
        out.collect_str(&format_args!("{}s", value.as_secs()))
    } else {
        out.collect_str(&format_args!("{}ms", value.as_millis()))
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "`{text}` is not a duration; write for example \"60s\" or \"500ms\""
            ))
        })
}
