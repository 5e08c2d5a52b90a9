// Times in the zone of the browser.

/** The Swedish format is that of ISO 8601, with a space. */
const LOCAL = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** The largest time of a `Date`, in milliseconds before and after 1970. */
const MAX_MS = 8.64e15;

/** Returns a time as text, which sorts by time. */
export function timeText(ms: number): string {
  return Math.abs(ms) > MAX_MS ? String(ms) : LOCAL.format(new Date(ms));
}

/** A time, with the same time in UTC as its title. */
export function Time({ ms }: { ms: number }) {
  if (Math.abs(ms) > MAX_MS) return <span>{ms}</span>;
  const date = new Date(ms);
  const utc = date.toISOString();
  return (
    <time dateTime={utc} title={utc}>
      {timeText(ms)}
    </time>
  );
}
