// Follows the events of a run without a stream, of which a tab has only one: the log is read again
// and again while the tab is visible.
import { toError } from "./error.ts";
import { type Follow, isTransient } from "./follow.ts";
import { readOutlines } from "./log.ts";

/** Pause between two readings, in milliseconds. */
const PAUSE_MS = 5_000;

/** Reads the events of a run to its end, or until the returned function is called. */
export function poll({ place, after, onEvents, onState, onError }: Follow): () => void {
  const reading = new AbortController();
  const { signal } = reading;
  let last = after;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wait = () => {
    timer = setTimeout(() => void look(), PAUSE_MS);
  };
  const look = async () => {
    if (document.visibilityState === "hidden") return wait();
    try {
      const { items } = await readOutlines(place, last, { run: place.run, signal });
      if (signal.aborted) return;
      last = items.at(-1)?.seq ?? last;
      if (items.length > 0) onEvents(items);
      if (items.some(({ type }) => type === "run_ended")) return onState("over");
      onState("open");
    } catch (error) {
      if (signal.aborted) return;
      if (!isTransient(error)) return onError(toError(error));
      onState("lost");
    }
    wait();
  };
  void look();
  return () => {
    reading.abort();
    clearTimeout(timer);
  };
}
