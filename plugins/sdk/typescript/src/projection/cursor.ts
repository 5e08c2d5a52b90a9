// Rows that follow the event log of a thread.

import type { Json } from "../json.ts";
import { allEvents, type Event, readEvent } from "../runs/index.ts";
import { rollBack } from "../sql/database.ts";
import { database, type Transaction } from "../sql/index.ts";

/**
 * Maximum number of attempts to apply new events. Another request can be faster each time, and a run
 * adds further events; the row is then recent enough.
 */
const ATTEMPTS = 5;

/**
 * A table projection of one thread: its row as it was read, and the fold of events into a change of the
 * tables. See {@link Cursor} for an example.
 */
export interface Projection<Change> {
  /** Id of the thread, which is also the id of the row. */
  readonly threadId: string;
  /** Cursor of the row. */
  readonly cursor: number;
  /**
   * Returns the sequence number after which the fold needs the events, if it needs some that were
   * applied before, such as those of the active run. The default is the cursor.
   */
  foldAfter?(): number;
  /**
   * Converts an event from JSON. All events of a fold are in memory at once, so an app can omit what
   * the fold does not need. The default keeps the whole content.
   */
  read?(event: Json): Event;
  /**
   * Returns true if an event changes the tables. Without such an event after the cursor, nothing is
   * folded, and the cursor stays. By default, each event matters.
   */
  matters?(event: Event): boolean;
  /**
   * Folds the events into a change. Returns the change and the new cursor: the sequence number of the
   * last event that is part of the change. Returns `undefined`, or the same cursor, to wait for further
   * events. The fold can read the tables and the thread, but its result depends on nothing else.
   */
  fold(events: Event[]): [change: Change, last: number] | undefined;
  /**
   * Writes a change, in the transaction that has moved the cursor of the row. The transaction blocks
   * other writers, so this function calls nothing but the database.
   */
  write(transaction: Transaction, change: Change): void;
  /**
   * Writes that the thread was deleted, in the transaction that has set the cursor to 0. The events of
   * a new thread with the same id count from 1. By default, nothing else is written.
   *
   * A log that ends before the cursor changes nothing, because runs can be deleted without their
   * thread, and the events before them have been applied. So a new thread with the same id is not
   * noticed if no request has found the old one missing. An app that deletes the thread of a row
   * deletes or resets the row as well.
   */
  forget?(transaction: Transaction): void;
  /**
   * Reads the row again, after a change by this request or another one. Returns false if the row no
   * longer exists, which ends {@link Cursor.follow}.
   */
  reload(): boolean;
}

/**
 * Where the rows of threads have their cursors. The names become part of SQL statements, so none of
 * them comes from a request.
 */
export interface CursorNames {
  /** Name of the database in the manifest of the app. */
  database: string;
  /** Name of the table. */
  table: string;
  /** Name of the column with the id of the thread. */
  id: string;
  /**
   * Name of the column with the cursor: the sequence number of the last event that was applied, a
   * 64-bit integer. The cursor of a new row is 0.
   */
  column: string;
}

/**
 * The cursors of the rows of a table. A cursor is the position in the log after which the next request
 * continues.
 *
 * The log has everything that the runs of a thread did. An application that lists, counts or audits it
 * has tables of its own, and a request applies the new events before it reads them:
 *
 * ```ts
 * import { projection, runs, sql } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const CASES = new projection.Cursor({
 *   database: "shop",
 *   table: "cases",
 *   id: "id",
 *   column: "event_cursor",
 * });
 *
 * // A row of the table, whose id is that of the thread.
 * class Case implements projection.Projection<number> {
 *   runs = 0;
 *   cursor = 0;
 *   readonly threadId: string;
 *
 *   constructor(id: string) {
 *     this.threadId = id;
 *   }
 *
 *   fold(events: runs.Event[]): [number, number] | undefined {
 *     const last = events.at(-1);
 *     const ended = events.filter(({ type }) => type === "run_ended").length;
 *     return last && [ended, last.seq];
 *   }
 *
 *   write(transaction: sql.Transaction, ended: number) {
 *     const add = "UPDATE cases SET runs = runs + $1 WHERE id = $2";
 *     transaction.execute(add, [ended, this.threadId]);
 *   }
 *
 *   reload() {
 *     const select = "SELECT runs, event_cursor FROM cases WHERE id = $1";
 *     const row = sql.database("shop").query(select, [this.threadId]).first();
 *     if (row === undefined) return false;
 *     this.runs = row.get("runs", z.int());
 *     this.cursor = row.get("event_cursor", z.int());
 *     return true;
 *   }
 * }
 *
 * const ended = { seq: 1, at_ms: 1, run: "r", type: "run_ended", status: "completed" };
 * const host = new FakeHost()
 *   .event("case-7", ended)
 *   .sql(() => new sql.Rows(["runs", "event_cursor"], [[1, 1]]));
 * const row = new Case("case-7");
 * host.run(() => CASES.follow(row));
 * assert.deepEqual([row.runs, row.cursor], [1, 1]);
 * ```
 *
 * One transaction writes the change and moves the cursor of the row, and only from the position that
 * was read. Each event is therefore applied once, however many requests read the row at the same time,
 * and a crash between a run and the tables loses nothing.
 */
export class Cursor {
  readonly #names: CursorNames;

  /** Describes the cursors of a table. */
  constructor(names: CursorNames) {
    this.#names = names;
  }

  /**
   * Applies the new events of a thread to its row, and reads the row again if it has changed.
   *
   * @throws The failures of the projection, of the database and of the log. A thread that does not
   * exist is no failure.
   */
  follow<Change>(row: Projection<Change>): void {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (!this.#apply(row) || !row.reload()) return;
    }
  }

  /**
   * Makes one attempt to apply new events. Returns true if the row in the table differs from the one
   * that was read.
   */
  #apply<Change>(row: Projection<Change>): boolean {
    const { threadId, cursor } = row;
    const logAfter = (after: number) => {
      return allEvents(threadId, after, (event) => row.read?.(event) ?? readEvent(event));
    };
    let events = logAfter(cursor);
    if (events === undefined) return this.#forget(row);
    if (!events.some((event) => row.matters?.(event) ?? true)) return false;
    const after = row.foldAfter?.() ?? cursor;
    if (after < cursor) events = logAfter(after);
    if (events === undefined) return this.#forget(row);
    const folded = row.fold(events);
    if (folded === undefined) return false;
    const [change, last] = folded;
    if (last <= cursor) return false;
    this.#advance(row, last, (transaction) => row.write(transaction, change));
    return true;
  }

  /** Resets the row of a thread that does not exist. */
  #forget(row: Projection<unknown>): boolean {
    if (row.cursor === 0) return false;
    this.#advance(row, 0, (transaction) => row.forget?.(transaction));
    return true;
  }

  /** Moves the cursor and writes, or does neither if another request has moved the cursor. */
  #advance(
    { threadId, cursor }: Projection<unknown>,
    last: number,
    write: (transaction: Transaction) => void,
  ): void {
    const { database: name, table, id, column } = this.#names;
    const advance = `UPDATE ${table} SET ${column} = $1 WHERE ${id} = $2 AND ${column} = $3`;
    const transaction = database(name).begin();
    let isMoved: boolean;
    try {
      isMoved = transaction.execute(advance, [last, threadId, cursor]).rowsAffected > 0;
      if (isMoved) write(transaction);
    } catch (error) {
      rollBack(transaction);
      throw error;
    }
    if (isMoved) transaction.commit();
    else transaction.rollback();
  }
}
