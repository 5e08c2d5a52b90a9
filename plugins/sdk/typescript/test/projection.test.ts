// Rows that follow the log of a thread, with a table in memory, and host calls in a log.

import { describe, expect, test } from "vitest";
import { code, type Extra, Failure, type Json, projection, runs, sql } from "wattle-plugin";
import { FakeHost, type Script, type ScriptedRows, type Statement } from "wattle-plugin/testing";
import * as z from "zod";
import { thrown } from "./thrown.ts";

const ROWS = new projection.Cursor({ database: "app", table: "rows", id: "key", column: "seen" });

const ENDED: Extra = { type: "run_ended", status: "completed" };
const CUSTOM: Extra = { type: "custom", node: "n", name: "found", data: {} };
const LOG: Extra = { type: "log" };

/**
 * A row that counts the events of its thread. It needs the whole active run: `after` is the event
 * before.
 */
class Row implements projection.Projection<number[]> {
  readonly threadId = "t";
  cursor: number;
  after: number;
  /** Only ends of runs matter. */
  readonly endsOnly: boolean;
  reloads = 0;

  constructor(cursor = 0, after = cursor, endsOnly = false) {
    this.cursor = cursor;
    this.after = after;
    this.endsOnly = endsOnly;
  }

  foldAfter() {
    return this.after;
  }

  read(event: Json) {
    return { ...runs.readEvent(event), run: "" };
  }

  matters({ type }: runs.Event) {
    return !this.endsOnly || type === "run_ended";
  }

  /** Stops before a custom event. */
  fold(events: runs.Event[]): [number[], number] | undefined {
    if (events.some(({ run }) => run !== "")) throw new Error("the row reads the events");
    const stop = events.findIndex(({ type }) => type === "custom");
    const done = events.slice(0, stop < 0 ? events.length : stop).map(({ seq }) => seq);
    const last = done.at(-1);
    return last === undefined ? undefined : [done, last];
  }

  write(transaction: sql.Transaction, change: number[]) {
    transaction.execute("INSERT", [change.join()]);
  }

  forget(transaction: sql.Transaction) {
    transaction.execute("FORGET");
  }

  reload() {
    this.reloads += 1;
    const row = sql.database("app").query("SELECT").first();
    if (row === undefined) return false;
    this.cursor = row.get("seen", z.int());
    this.after = Math.max(this.after, this.cursor);
    return true;
  }
}

const hostWith = (events: Extra[], script: Script<Statement, ScriptedRows>) => {
  const base = { at_ms: 1, run: "r" };
  return events.reduce(
    (host: FakeHost, event, index) => host.event("t", { ...base, ...event, seq: index + 1 }),
    new FakeHost().sql(script),
  );
};

/** Returns a host with a thread, and a table whose row has the cursor `stored`. */
const host = (events: Extra[], stored: number) => {
  let seen = stored;
  return hostWith(events, ({ text, parameters }) => {
    if (text === "SELECT") return new sql.Rows(["seen"], [[seen]]);
    if (text === "INSERT" || text === "FORGET") return 1;
    expect(text).toBe("UPDATE rows SET seen = $1 WHERE key = $2 AND seen = $3");
    const [to, key, from] = parameters;
    expect(key).toBe("t");
    if (seen !== from) return 0;
    seen = to as number;
    return 1;
  });
};

/**
 * Returns the statements without those that read the row, with the parameters of those that write what
 * the application has folded.
 */
const written = (it: FakeHost) => {
  const statements = it.statements().filter(({ text }) => text !== "SELECT");
  expect(statements.every(({ inTransaction }) => inTransaction)).toBe(true);
  return statements.map(({ text, parameters }) => {
    return text === "INSERT" ? `INSERT ${parameters[0]}` : text.split(" ")[0];
  });
};

const follow = (it: FakeHost, row: Row) => it.run(() => ROWS.follow(row));

describe("rows that follow a thread", () => {
  const three = [LOG, CUSTOM, ENDED];
  const many = Array.from({ length: 300 }, () => ENDED);
  const all = Array.from(many, (_, index) => index + 1).join();

  test.each<[Extra[], () => Row, string, number]>([
    [three, () => new Row(), "INSERT 1", 1],
    [three, () => new Row(2, 2, true), "INSERT 3", 3],
    // The whole run is folded again, once an event matters.
    [[ENDED, ENDED], () => new Row(1, 0, true), "INSERT 1,2", 2],
    [many, () => new Row(), `INSERT ${all}`, 300],
  ])(
    "new events are applied with the cursor in one transaction (%#)",
    (log, make, change, last) => {
      const row = make();
      const it = host(log, row.cursor);
      follow(it, row);
      expect(written(it)).toEqual(["BEGIN", "UPDATE", change, "COMMIT"]);
      expect([row.cursor, row.reloads]).toEqual([last, 1]);
    },
  );

  test.each<[Extra[], () => Row]>([
    [[LOG], () => new Row(0, 0, true)],
    [three, () => new Row(1)],
    [three, () => new Row(3)],
    [[ENDED, LOG], () => new Row(1, 0, true)],
    // The newest run was deleted. The events before it have been applied.
    [[ENDED, ENDED], () => new Row(7)],
  ])("a log without events to apply changes nothing (%#)", (log, make) => {
    const row = make();
    const { cursor } = row;
    const it = host(log, cursor);
    follow(it, row);
    expect(it.statements()).toEqual([]);
    expect([row.cursor, row.reloads]).toEqual([cursor, 0]);
  });

  test("one of two concurrent requests applies an event", () => {
    // The other request has applied the first event since the row was read.
    const it = host([ENDED, ENDED], 1);
    const row = new Row();
    follow(it, row);
    expect([row.cursor, row.reloads]).toEqual([2, 2]);
    const lost = ["BEGIN", "UPDATE", "ROLLBACK"];
    expect(written(it)).toEqual([...lost, "BEGIN", "UPDATE", "INSERT 2", "COMMIT"]);
  });

  test("a request that is always slower keeps the row as it was read", () => {
    const slow = hostWith([ENDED], ({ text }) => {
      return text === "SELECT" ? new sql.Rows(["seen"], [[0]]) : 0;
    });
    const row = new Row();
    follow(slow, row);
    expect([row.cursor, row.reloads]).toEqual([0, 5]);
    expect(new Set(written(slow))).toEqual(new Set(["BEGIN", "UPDATE", "ROLLBACK"]));
  });

  test.each([
    [0, 0, []],
    [7, 7, ["BEGIN", "UPDATE", "FORGET", "COMMIT"]],
    // Another request has reset it, or its thread is a new one.
    [7, 0, ["BEGIN", "UPDATE", "ROLLBACK"]],
  ])("a deleted thread resets its row once (%#)", (cursor, stored, expected) => {
    const it = host([], stored);
    const row = new Row(cursor);
    follow(it, row);
    expect(row.cursor).toBe(0);
    expect(written(it)).toEqual(expected);
  });

  test("a thread without events changes nothing", () => {
    const it = new FakeHost().thread({ threadId: "t", graph: "g" });
    const row = new Row(7);
    follow(it, row);
    expect([row.cursor, row.reloads, it.statements()]).toEqual([7, 0, []]);
  });

  test("a row that is gone is read once", () => {
    const row = new Row();
    follow(
      hostWith([ENDED], () => new sql.Rows()),
      row,
    );
    expect([row.cursor, row.reloads]).toEqual([0, 1]);
  });

  test("a failed write moves no cursor", () => {
    const it = hostWith([ENDED], ({ text }) => {
      if (text === "INSERT") throw Failure.unavailable("full");
      return 1;
    });
    expect(thrown(() => follow(it, new Row())).code).toBe(code.UNAVAILABLE);
    expect(it.statements().at(-1)?.text).toBe("ROLLBACK");
  });
});

describe("pairs of host calls", () => {
  /** Reads events with sequence numbers from `first`. */
  const read = (log: Extra[], first = 1) => {
    return log.map((event, index) => {
      const seq = first + index;
      return runs.readEvent({ ...event, seq, at_ms: seq * 10, run: "r" });
    });
  };
  const started = (call: number, name = "tools.call", scope: number[] = []): Extra => {
    return { type: "call_started", task: "t", scope, call, function: name, summary: "s" };
  };
  const called = (call: number, name = "tools.call", scope: number[] = []): Extra => {
    const result = { result: { Ok: {} }, duration_us: 7 };
    return { ...started(call, name, scope), type: "called", node: "n", request: {}, ...result };
  };
  const begun = (reason: string): Extra => ({ type: "run_started", graph: "g", reason });

  /** Returns the items as texts: what they are, and the sequence numbers of their events. */
  const paired = (events: runs.Event[]): [string[], number] => {
    const isPaired = (name: string) => runs.isModelCall(name) || runs.isToolCall(name);
    const { items, last } = projection.calls.pairs(events, isPaired);
    const texts = items.map((item) => {
      const end = item.type === "lost" ? ` at ${item.end.seq}` : "";
      return `${item.type} ${item.event.seq}${end}`;
    });
    return [texts, last];
  };

  test.each<[Extra[], string, number]>([
    [[], "", 0],
    [[begun("input"), CUSTOM, ENDED], "other 1, other 2, other 3", 3],
    [[started(0), called(0)], "started 1, ended 2", 2],
    // A call batch.
    [[started(0), started(1), called(1), called(0)], "started 1, started 2, ended 3, ended 4", 4],
    // A call of the tool with the number of the tool's call.
    [
      [started(0), started(0, "llm.complete", [0]), called(0, "llm.complete", [0]), called(0)],
      "started 1, started 2, ended 3, ended 4",
      4,
    ],
    [[CUSTOM, started(0), CUSTOM], "other 1", 1],
    [[started(0), called(0), started(1), CUSTOM], "started 1, ended 2", 2],
    // Calls that overlap a pending one, directly and by another call.
    [[CUSTOM, started(0), started(1), called(0)], "other 1", 1],
    [[started(0), started(1), called(0), started(2), called(1)], "", 0],
    [[started(0), ENDED], "lost 1 at 2, other 2", 2],
    [[started(0), started(0), called(0)], "lost 1 at 2, started 2, ended 3", 3],
    [
      [started(0), begun("recovery"), started(0), called(0)],
      "lost 1 at 2, other 2, started 3, ended 4",
      4,
    ],
    // A call that was refused before it started.
    [[called(0)], "started 1, ended 1", 1],
    // Calls that are not paired.
    [[started(0, "sql.query")], "other 1", 1],
    [[called(0, "http.send")], "other 1", 1],
  ])("calls are paired up to the first pending one (%#)", (log, items, last) => {
    const [found, foundLast] = paired(read(log));
    expect([found.join(", "), foundLast]).toEqual([items, last]);
  });

  test("parts of a log give the items of the whole log", () => {
    const log = [
      begun("input"),
      started(0),
      CUSTOM,
      called(0),
      called(1),
      started(2, "llm.complete"),
      ENDED,
      begun("input"),
      // A call batch.
      started(3),
      started(4),
      called(3),
      started(5),
      called(5),
      called(4),
      ENDED,
    ];
    const [whole] = paired(read(log));
    for (let end = 0; end < log.length; end += 1) {
      const [first, last] = paired(read(log.slice(0, end)));
      const [second] = paired(read(log.slice(last), last + 1));
      expect([...first, ...second]).toEqual(whole);
    }
  });
});
