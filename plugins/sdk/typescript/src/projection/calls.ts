// Host calls in an event log, with start and result together.

import type { Called, CallStarted, Event } from "../runs/index.ts";

/** An item of a log: an event, with the other event of its call. */
export type Item =
  /**
   * A call started that has a result. A call without a start in the log, such as one that was refused,
   * starts with its result.
   */
  | { type: "started"; event: CallStarted | Called; called: Called }
  /** A call returned its result. Its start is an earlier item. */
  | { type: "ended"; event: Called }
  /**
   * A call started that can get no result. `end` is the event after which there is no result: the run
   * ended or was recovered, or the call started again.
   */
  | { type: "lost"; event: CallStarted; end: Event }
  /** Another event, or an event of a call that is not paired. */
  | { type: "other"; event: Event };

/** The items of a log up to the first pending call, or the first call that overlaps it. */
export interface Pairs {
  /** The items in the order of the log. */
  items: Item[];
  /** Sequence number of the last event of the items; 0 if there is none. */
  last: number;
}

/** What an event is to the calls of a log. */
type Role =
  /** A start whose call has neither ended nor been lost. */
  | { type: "pending"; event: CallStarted }
  /** A start, with the result of its call and the index of the result. */
  | { type: "ended"; event: CallStarted; called: Called; end: number }
  /** A start, with the event since which its call can get no result. */
  | { type: "lost"; event: CallStarted; end: Event }
  /** A result. */
  | { type: "result"; event: Called; hasStart: boolean }
  | { type: "other"; event: Event };

/**
 * Returns the items of consecutive events. Calls of functions for which `isPaired` returns false are
 * other events, and are not waited for.
 *
 * An audit trail has two rows for a call, and the first one often needs the result, too. A call can
 * also lose its result, because its run ended or the host was started again. The items have both, and
 * stop before a pending call, and before a call that overlaps it, so that a {@link Projection} applies
 * both at once. The same events give the same items, even in several parts, each of which begins after
 * the last event of the part before.
 *
 * ```ts
 * import { projection, runs } from "wattle-plugin";
 *
 * const base = { at_ms: 7, run: "r", task: "t", function: "tools.call" };
 * const started = { ...base, type: "call_started", summary: "shop/find" };
 * const called = { ...base, type: "called", node: "n", request: {}, result: { Ok: {} }, duration_us: 5 };
 * const log = [
 *   { ...started, seq: 1, call: 0 },
 *   { ...called, seq: 2, call: 0 },
 *   { ...started, seq: 3, call: 1 },
 * ];
 * const pairs = projection.calls.pairs(log.map(runs.readEvent), runs.isToolCall);
 * assert.deepEqual(pairs.items.map(({ type }) => type), ["started", "ended"]);
 * // The second call is pending.
 * assert.equal(pairs.last, 2);
 * ```
 */
export function pairs(events: readonly Event[], isPaired: (name: string) => boolean): Pairs {
  const roles = rolesOf(events, isPaired);
  const pending = roles.findIndex(({ type }) => type === "pending");
  let complete = pending < 0 ? roles.length : pending;
  for (let start = complete - 1; start >= 0; start -= 1) {
    const role = roles[start];
    if (role?.type === "ended" && role.end >= complete) complete = start;
  }
  const whole = roles.slice(0, complete);
  return { items: whole.flatMap(itemsOf), last: whole.at(-1)?.event.seq ?? 0 };
}

function itemsOf(role: Role): Item[] {
  switch (role.type) {
    case "ended":
      return [{ type: "started", event: role.event, called: role.called }];
    case "lost":
      return [role];
    case "result": {
      const { event, hasStart } = role;
      const ended: Item = { type: "ended", event };
      return hasStart ? [ended] : [{ type: "started", event, called: event }, ended];
    }
    default:
      return [{ type: "other", event: role.event }];
  }
}

/** Returns the role of each event. */
function rolesOf(events: readonly Event[], isPaired: (name: string) => boolean): Role[] {
  const roles: Role[] = [];
  // The starts of calls without a result so far.
  const open = new Map<string, { event: CallStarted; index: number }>();
  const take = (key: string) => {
    const start = open.get(key);
    open.delete(key);
    return start;
  };
  events.forEach((event, index) => {
    if (event.type === "call_started") {
      const key = keyOf(event);
      const before = take(key);
      if (before) roles[before.index] = { type: "lost", event: before.event, end: event };
      if (isPaired(event.function)) {
        open.set(key, { event, index });
        roles.push({ type: "pending", event });
        return;
      }
    } else if (event.type === "called") {
      const start = take(keyOf(event));
      if (start) {
        roles[start.index] = { type: "ended", event: start.event, called: event, end: index };
      }
      if (isPaired(event.function)) {
        roles.push({ type: "result", event, hasStart: start !== undefined });
        return;
      }
    } else if (event.type === "run_ended" || event.type === "run_started") {
      for (const start of open.values()) {
        roles[start.index] = { type: "lost", event: start.event, end: event };
      }
      open.clear();
    }
    roles.push({ type: "other", event });
  });
  return roles;
}

/** Returns task, scope and number of a call. */
function keyOf({ task, scope = [], call }: CallStarted | Called): string {
  return JSON.stringify([task, scope, call]);
}
