// Dates and their texts, which are those of the other SDKs, and days of a time zone.

import { describe, expect, test } from "vitest";
import { clock, ZoneSetting } from "wattle-plugin";
import { FakeHost } from "wattle-plugin/testing";
import { civilOf, dateOf, daysTo, firstFrom } from "../src/calendar.ts";
import { thrown } from "./thrown.ts";
import { vectors } from "./vectors.ts";

describe("texts", () => {
  test.each(vectors.utc)("the instant %i is %s", (unixMs, milliseconds, seconds) => {
    expect([clock.utc(unixMs), clock.utcSeconds(unixMs)]).toEqual([milliseconds, seconds]);
  });

  test.each(vectors.iso)("the instant %i has a fixed form (%#)", (unixMs, offset, iso, digits) => {
    const civil = civilOf(unixMs);
    const zoned = { civil, offsetSeconds: offset, weekday: 1, zone: "" };
    expect([clock.iso(zoned), clock.digits(civil)]).toEqual([iso, digits]);
  });
});

describe("dates", () => {
  test.each(vectors.plus_days)("%j and %i days are %j", (day, days, then) => {
    const noon = (date: typeof day) => ({ ...clock.midnight(...date), hour: 12 });
    const expected = then === null ? undefined : noon(then);
    expect(clock.plusDays(noon(day), days)).toEqual(expected);
  });

  test.each(vectors.days_in_month)(
    "of the year %i, the month %i has %j days",
    (year, month, days) => {
      expect(clock.daysInMonth(year, month)).toBe(days ?? undefined);
      const last = clock.checkedDate(year, month, days ?? 1);
      expect(last).toEqual(days === null ? undefined : clock.midnight(year, month, days));
      expect(clock.checkedDate(year, month, (days ?? 0) + 1)).toBeUndefined();
      expect(clock.checkedDate(year, month, 0)).toBeUndefined();
    },
  );

  test("days of four hundred years follow one another", () => {
    let number = daysTo(clock.midnight(1800, 1, 1));
    for (let year = 1800; year < 2200; year += 1) {
      for (let month = 1; month <= 12; month += 1) {
        for (let day = 1; day <= (clock.daysInMonth(year, month) ?? 0); day += 1) {
          const date = dateOf(number);
          if (date?.year !== year || date.month !== month || date.day !== day) {
            throw new Error(`${number} is ${JSON.stringify(date)}`);
          }
          number += 1;
        }
      }
    }
    expect(daysTo(clock.midnight(2200, 1, 1))).toBe(number);
  });
});

describe("days of a time zone", () => {
  test.each<[string | undefined, string, number]>([
    [undefined, "2025-01-15", 1_736_870_400_000],
    ["America/New_York", "2025-01-14", 1_736_830_800_000],
  ])("a day begins in the time zone %s", (zone, date, beginsMs) => {
    // 2025-01-14T18:30:00Z is the next morning in Shanghai.
    const host = new FakeHost()
      .nowMs(1_736_879_400_000)
      .zone("America/New_York", -18_000)
      .zone("Asia/Shanghai", 28_800);
    host.run(() => {
      const today = clock.nowIn(zone).civil;
      expect(clock.date(today)).toBe(date);
      expect(clock.firstInstant(today, zone)).toBe(beginsMs);
      expect(thrown(() => clock.nowIn("Mars/Olympus")).code).toBe("invalid");
    });
  });

  test("a day without midnight begins at the end of the gap", () => {
    // Clocks go from 23:30 to 00:30 of the next day.
    const gapMs = 1_736_897_400_000;
    const civilAt = (unixMs: number) => civilOf(unixMs + (unixMs < gapMs ? 0 : 3_600_000));
    expect(firstFrom(clock.midnight(2025, 1, 15), gapMs + 1_800_000, civilAt)).toBe(gapMs);
  });
});

describe("settings with a time zone", () => {
  const ZONE = new ZoneSetting("time_zone");

  test.each([
    [undefined, ZONE, undefined],
    ["", ZONE, undefined],
    [" ", ZONE.withDefault("UTC"), "UTC"],
    [undefined, ZONE.withDefault("UTC"), "UTC"],
    ["Asia/Tokyo ", ZONE.withDefault("UTC"), "Asia/Tokyo"],
  ])("a blank setting is the default zone (%#)", (setting, zoneSetting, zone) => {
    const host = new FakeHost();
    if (setting !== undefined) host.setting("time_zone", setting);
    expect(host.run(() => zoneSetting.zone())).toBe(zone);
  });

  test("a setting is a text", () => {
    const host = new FakeHost().setting("time_zone", 8);
    expect(thrown(() => host.run(() => ZONE.now())).code).toBe("invalid");
  });

  test("the current time is that of the zone", () => {
    // 2025-01-14T18:30:00Z is the next morning in Shanghai.
    const host = new FakeHost()
      .nowMs(1_736_879_400_000)
      .zone("America/New_York", -18_000)
      .zone("Asia/Shanghai", 28_800);
    const today = () => clock.date(host.run(() => ZONE.now()).civil);
    expect(today()).toBe("2025-01-15");
    host.setting("time_zone", "America/New_York");
    expect(today()).toBe("2025-01-14");
    host.setting("time_zone", "Mars/Olympus");
    expect(thrown(today).code).toBe("invalid");
  });
});
