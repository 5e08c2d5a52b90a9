//! When something comes again: five fields as `cron` has them, in a time zone.
//!
//! When clocks go on or back, schedules behave as those of `cron` do. One for certain hours comes
//! once each time: what is skipped in spring comes that much later, and what a clock has twice in
//! autumn comes the first time only. One for every so many hours goes by the time that passes.

use cronexpr::{Crontab, MakeTimestamp, parse_crontab};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// The zone of schedules that name none.
const UTC: &str = "UTC";

/// Fields of a schedule: minute, hour, day of the month, month, day of the week.
const FIELDS: usize = 5;

/// What the field of the hours begins with if it does not name certain ones.
const ANY: char = '*';

/// Hours that a clock goes on by, at the most.
const LARGEST_GAP: i64 = 2;

/// When something comes again.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// In UTC if it is for certain hours, which are those of clocks in the zone.
    crontab: Crontab,
    clocks: Option<TimeZone>,
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or with the zone.
    pub fn read(fields: &str, zone: Option<&str>) -> Result<Self, String> {
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let &[_, hours, ..] = parts.as_slice() else { return Err(wrong_count(parts.len())) };
        if parts.len() != FIELDS {
            return Err(wrong_count(parts.len()));
        }
        let zone = zone.unwrap_or(UTC);
        let clocks = TimeZone::get(zone).map_err(|_| {
            format!("`timezone` names no zone: `{zone}`; use an IANA name such as `Europe/Berlin`")
        })?;
        let clocks = Some(clocks).filter(|_| !hours.starts_with(ANY));
        let zone = if clocks.is_some() { UTC } else { zone };
        let crontab = parse_crontab(&format!("{} {zone}", parts.join(" ")));
        let crontab = crontab.map_err(|error| {
            // Above the last line it points into the text, which nobody sees in one line of JSON.
            let why = error.to_string();
            format!("`schedule` cannot be read: {}", why.lines().last().unwrap_or_default().trim())
        })?;
        Ok(Self { crontab, clocks })
    }

    /// The first time after another, milliseconds since 1970; `None` if there is none.
    pub fn after(&self, ms: i64) -> Option<i64> {
        let time = Timestamp::from_millisecond(ms).ok()?;
        let Some(clocks) = &self.clocks else {
            let next = self.crontab.find_next(MakeTimestamp(time)).ok()?;
            return Some(next.timestamp().as_millisecond());
        };
        // What a clock shows is taken for a time in UTC, and back. From a little earlier, as what
        // was skipped comes late.
        let shown = time.to_zoned(clocks.clone()).datetime();
        let mut shown = shown.checked_sub(LARGEST_GAP.hours()).ok()?;
        loop {
            let plain = shown.to_zoned(TimeZone::UTC).ok()?.timestamp();
            shown = self.crontab.find_next(MakeTimestamp(plain)).ok()?.datetime();
            let next = shown.to_zoned(clocks.clone()).ok()?.timestamp();
            if next > time {
                return Some(next.as_millisecond());
            }
        }
    }
}

fn wrong_count(count: usize) -> String {
    format!("`schedule` must have {FIELDS} fields, such as `0 9 * * 1-5`, not {count}")
}

/// Reads a time as clients write it; one without an offset is in UTC.
pub fn read_time(text: &str) -> Option<i64> {
    let with_offset = text.parse::<Timestamp>();
    let time = with_offset.or_else(|_| {
        let plain = text.parse::<DateTime>()?;
        Ok::<_, jiff::Error>(plain.to_zoned(TimeZone::UTC)?.timestamp())
    });
    time.ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use wattle_project::agent_server::time::iso;

    use super::*;

    fn after(fields: &str, zone: Option<&str>, time: &str) -> Option<String> {
        let schedule = Schedule::read(fields, zone).unwrap();
        schedule.after(read_time(time).unwrap()).map(|ms| iso(ms)[..16].to_owned())
    }

    #[test]
    fn the_next_time_is_in_the_zone() {
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
    fn clocks_that_go_on_or_back_skip_and_double_nothing() {
        for (fields, time, next) in [
            // In spring there is no 2:30.
            ("30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T01:30"),
            ("30 2 * * *", "2026-03-29T01:10:00Z", "2026-03-29T01:30"),
            ("30 2 * * *", "2026-03-29T01:30:00Z", "2026-03-30T00:30"),
            // In autumn there are two.
            ("30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30"),
            ("30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30"),
            ("30 2 * * *", "2026-10-25T01:10:00Z", "2026-10-26T01:30"),
            // By the hours that pass.
            ("0 * * * *", "2026-10-25T00:00:00Z", "2026-10-25T01:00"),
            ("0 * * * *", "2026-03-29T00:30:00Z", "2026-03-29T01:00"),
            ("0 */2 * * *", "2026-03-29T00:30:00Z", "2026-03-29T02:00"),
        ] {
            let found = after(fields, Some("Europe/Berlin"), time);
            assert_eq!(found.as_deref(), Some(next), "{fields} {time}");
        }
    }

    #[test]
    fn what_never_comes_has_no_next_time() {
        assert_eq!(after("0 0 30 2 *", None, "2026-01-01T00:00:00Z"), None);
    }

    #[test]
    fn other_forms_are_refused() {
        for (fields, zone, why) in [
            ("* * * *", None, "not 4"),
            ("* * * * * *", None, "not 6"),
            ("@daily", None, "not 1"),
            ("61 * * * *", None, "cannot be read"),
            ("* * * * *", Some("Mars/Base"), "no zone"),
            ("* * * * *", Some(""), "no zone"),
        ] {
            let found = Schedule::read(fields, zone).unwrap_err();
            assert!(found.contains(why) && !found.contains('\n'), "{fields}: {found}");
        }
    }

    #[test]
    fn times_without_an_offset_are_in_utc() {
        let wanted = Some(1_795_338_000_000);
        for text in
            ["2026-11-22T09:00:00+00:00", "2026-11-22T09:00:00", "2026-11-22T10:00:00+01:00"]
        {
            assert_eq!(read_time(text), wanted, "{text}");
        }
        assert_eq!(read_time("tomorrow"), None);
    }
}
