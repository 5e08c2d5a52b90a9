//! Schedules of crons: five fields as in `crontab`, with a time zone.
//!
//! At changes of daylight saving time, a schedule behaves as in `cron`. A schedule for fixed hours
//! matches once: a local time that does not exist in spring matches later by the length of the gap,
//! and a local time that occurs twice in autumn matches only the first time. A schedule with an
//! interval of hours follows the elapsed time.

use cronexpr::{Crontab, MakeTimestamp, parse_crontab};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// Default time zone.
const UTC: &str = "UTC";

/// Number of fields of a schedule: minute, hour, day of the month, month, day of the week.
const FIELDS: usize = 5;

/// First character of an hours field without fixed hours.
const WILDCARD: char = '*';

/// Maximum number of hours by which clocks are set forward.
const MAX_DST_GAP_HOURS: i64 = 2;

/// A parsed schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The schedule. If its hours are fixed, its time zone is UTC and its matches are local times,
    /// which `local_zone` converts.
    crontab: Crontab,
    /// Time zone of a schedule with fixed hours; `None` for other schedules.
    local_zone: Option<TimeZone>,
}

impl Schedule {
    /// Parses a schedule.
    ///
    /// # Errors
    ///
    /// Returns a message with the reason why the schedule or the time zone is invalid.
    pub fn parse(fields: &str, zone: Option<&str>) -> Result<Self, String> {
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let &[_, hours, ..] = parts.as_slice() else { return Err(field_count_error(parts.len())) };
        if parts.len() != FIELDS {
            return Err(field_count_error(parts.len()));
        }
        let zone = zone.unwrap_or(UTC);
        let local_zone = TimeZone::get(zone).map_err(|_| {
            format!("`timezone` is invalid: `{zone}`; use an IANA name such as `Europe/Berlin`")
        })?;
        let local_zone = Some(local_zone).filter(|_| !hours.starts_with(WILDCARD));
        let zone = if local_zone.is_some() { UTC } else { zone };
        let crontab = parse_crontab(&format!("{} {zone}", parts.join(" ")));
        let crontab = crontab.map_err(|error| {
            // The last line of the error contains the reason, after a caret that marks the position
            // in the lines above.
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_matches([' ', '^']);
            format!("`schedule` cannot be read: {why}")
        })?;
        Ok(Self { crontab, local_zone })
    }

    /// Returns the first match after `ms`, in milliseconds since 1970; `None` if there is none.
    pub fn next_after(&self, ms: i64) -> Option<i64> {
        let time = Timestamp::from_millisecond(ms).ok()?;
        let Some(local_zone) = &self.local_zone else {
            let next = self.crontab.find_next(MakeTimestamp(time)).ok()?;
            return Some(next.timestamp().as_millisecond());
        };
        // The schedule is matched against local times as if they were in UTC, and the match is
        // converted back. The search starts earlier by the largest gap, because the match of a
        // local time that does not exist is converted to a later time.
        let local = time.to_zoned(local_zone.clone()).datetime();
        let mut local = local.checked_sub(MAX_DST_GAP_HOURS.hours()).ok()?;
        loop {
            let utc = local.to_zoned(TimeZone::UTC).ok()?.timestamp();
            local = self.crontab.find_next(MakeTimestamp(utc)).ok()?.datetime();
            let next = local.to_zoned(local_zone.clone()).ok()?.timestamp();
            if next > time {
                return Some(next.as_millisecond());
            }
        }
    }
}

fn field_count_error(count: usize) -> String {
    format!("`schedule` must have {FIELDS} fields, such as `0 9 * * 1-5`, not {count}")
}

/// Parses a time, in milliseconds since 1970. A time without an offset is in UTC.
pub fn parse_time(text: &str) -> Option<i64> {
    let with_offset = text.parse::<Timestamp>();
    let time = with_offset.or_else(|_| {
        let utc = text.parse::<DateTime>()?;
        Ok::<_, jiff::Error>(utc.to_zoned(TimeZone::UTC)?.timestamp())
    });
    time.ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use wattle_project::agent_server::time::format_time_with_micros;

    use super::*;

    fn after(fields: &str, zone: Option<&str>, time: &str) -> Option<String> {
        let schedule = Schedule::parse(fields, zone).unwrap();
        schedule
            .next_after(parse_time(time).unwrap())
            .map(|ms| format_time_with_micros(ms)[..16].to_owned())
    }

    #[test]
    fn next_time_respects_the_time_zone_of_the_schedule() {
        for (fields, zone, time, next) in [
            ("0 9 * * *", None, "2026-11-22T09:00:00Z", "2026-11-23T09:00"),
            ("0 9 * * *", None, "2026-11-22T08:59:59.999Z", "2026-11-22T09:00"),
            ("*/5 * * * *", None, "2026-11-22T09:02:10Z", "2026-11-22T09:05"),
            ("0 9 * * 1-5", Some("America/New_York"), "2026-11-21T00:00:00Z", "2026-11-23T14:00"),
            ("0 9 * * *", Some("Europe/Berlin"), "2026-07-01T00:00:00Z", "2026-07-01T07:00"),
            ("30 4 1,15 * 5", None, "2026-11-22T00:00:00Z", "2026-11-27T04:30"),
            // A leap day.
            ("0 0 29 2 *", None, "2026-01-01T00:00:00Z", "2028-02-29T00:00"),
        ] {
            assert_eq!(
                after(fields, zone, time).as_deref(),
                Some(next),
                "{fields} {zone:?} {time}"
            );
        }
    }

    #[test]
    fn daylight_saving_time_neither_skips_nor_repeats_a_match() {
        for (fields, time, next) in [
            // 2:30 is skipped in spring.
            ("30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:30"),
            ("30 2 * * *", "2026-03-29T01:10:00Z", "2026-03-29T01:30"),
            ("30 2 * * *", "2026-03-29T01:30:00Z", "2026-03-30T00:30"),
            // 2:30 occurs twice in autumn.
            ("30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30"),
            ("30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30"),
            ("30 2 * * *", "2026-10-25T01:10:00Z", "2026-10-26T01:30"),
            // Intervals follow the elapsed time.
            ("0 * * * *", "2026-10-25T00:00:00Z", "2026-10-25T01:00"),
            ("0 * * * *", "2026-03-29T00:30:00Z", "2026-03-29T01:00"),
            ("0 */2 * * *", "2026-03-29T00:30:00Z", "2026-03-29T02:00"),
        ] {
            let found = after(fields, Some("Europe/Berlin"), time);
            assert_eq!(found.as_deref(), Some(next), "{fields} {time}");
        }
    }

    #[test]
    fn impossible_date_has_no_next_time() {
        assert_eq!(after("0 0 30 2 *", None, "2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn invalid_schedule_is_rejected() {
        for (fields, zone, why) in [
            ("* * * *", None, "not 4"),
            ("* * * * * *", None, "not 6"),
            ("@daily", None, "not 1"),
            ("61 * * * *", None, "cannot be read: value must be in range 0..=59; found 61"),
            ("* * * * *", Some("Mars/Base"), "is invalid"),
            ("* * * * *", Some(""), "is invalid"),
        ] {
            let found = Schedule::parse(fields, zone).unwrap_err();
            assert!(found.contains(why) && !found.contains('\n'), "{fields}: {found}");
        }
    }

    #[test]
    fn times_without_an_offset_are_in_utc() {
        let wanted = Some(1_795_338_000_000);
        for text in
            ["2026-11-22T09:00:00+00:00", "2026-11-22T09:00:00", "2026-11-22T10:00:00+01:00"]
        {
            assert_eq!(parse_time(text), wanted, "{text}");
        }
        assert_eq!(parse_time("tomorrow"), None);
    }
}
