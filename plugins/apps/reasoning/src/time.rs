//! The current time as a text, and the current date, which models need for relative dates such as
//! "last month".

use wattle_plugin::clock::ZoneSetting;
use wattle_plugin::prelude::{Failure, Value, clock, json};

/// Time zone in which days begin and end.
const ZONE: ZoneSetting = ZoneSetting::new("time_zone");

const WEEKDAYS: [&str; 7] = ["星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"];

/// Returns the current date, the weekday and the time zone.
pub(crate) fn today() -> Result<Value, Failure> {
    let now = ZONE.now()?;
    let weekday = WEEKDAYS.get(usize::from(now.weekday).wrapping_sub(1)).copied();
    Ok(json!({ "date": now.civil.date(), "weekday": weekday, "time_zone": now.zone }))
}

/// Returns the current time in UTC as `2025-01-15T02:30:45.000Z`. Such texts sort by time.
pub(crate) fn now() -> String {
    clock::utc(clock::now_ms())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;
    use wattle_plugin::testing::FakeHost;

    use super::{now, today};

    #[test]
    fn today_is_the_date_in_the_configured_zone() {
        // 16:30 in London, half past midnight in Shanghai.
        let host = || {
            let host = FakeHost::new().now_ms(1_736_872_200_000);
            host.zone("Asia/Shanghai", 28_800).zone("Europe/London", 0)
        };
        let day = |zone: &str| host().setting("time_zone", zone).run(today);
        let wednesday =
            json!({"date": "2025-01-15", "weekday": "星期三", "time_zone": "Asia/Shanghai"});
        let tuesday =
            json!({"date": "2025-01-14", "weekday": "星期二", "time_zone": "Europe/London"});
        assert_eq!(day("Asia/Shanghai").unwrap(), wednesday);
        assert_eq!(day("").unwrap(), tuesday, "the host's");
        assert_eq!(host().run(today).unwrap(), tuesday, "the host's");
        assert_eq!(day("Mars/Olympus").unwrap_err().code, "invalid");
    }

    #[test]
    fn times_have_milliseconds() {
        let host = FakeHost::new().now_ms(1_736_908_245_007).zone("Asia/Shanghai", 28_800);
        assert_eq!(host.run(now), "2025-01-15T02:30:45.007Z");
    }
}
