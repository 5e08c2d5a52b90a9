// Databases and transactions.

import * as host from "#host/sql";
import { Failure } from "../failure.ts";
import { checkSynchronous } from "../name.ts";
import type { Executed, Rows } from "./rows.ts";
import { Inexact, type Value } from "./value.ts";

/** A dialect of SQL. Another text is a dialect unknown to this SDK version. */
export type Dialect = "sqlite" | "postgres" | (string & {});

/** What executes statements: a database, or a transaction of the host or of the fake host. */
export interface TransactionHandle {
  /** Executes a statement that reads. */
  query(statement: string, parameters: Value[]): Rows;
  /** Executes a statement that writes. */
  execute(statement: string, parameters: Value[]): Executed;
  /** Commits the transaction. */
  commit(): void;
  /** Rolls back the transaction. */
  rollback(): void;
}

/** A database, identified by its name in the manifest of the app. */
export class Database {
  readonly #name: string;

  /** Creates a handle. The first call checks the name. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Executes a statement that reads. Parameters are `$1`, `$2` and so on in all dialects. */
  query(statement: string, parameters: readonly Value[] = []): Rows {
    return host.query(this.#name, statement, checked(parameters));
  }

  /** Executes a statement that writes, in its own transaction. */
  execute(statement: string, parameters: readonly Value[] = []): Executed {
    return host.execute(this.#name, statement, checked(parameters));
  }

  /**
   * Starts a transaction, commits it if `work` returns, and rolls it back if `work` throws. `work` is not
   * `async`: a promise is a failure, and the transaction is rolled back.
   *
   * ```ts
   * import { sql } from "wattle-plugin";
   * import { FakeHost } from "wattle-plugin/testing";
   * import * as z from "zod";
   *
   * const host = new FakeHost().sql(() => new sql.Rows(["id"], [[1]]));
   * host.run(() =>
   *   sql.database("asset").transaction((transaction) => {
   *     const insert = "INSERT INTO item (name) VALUES ($1) RETURNING id";
   *     const { returned } = transaction.execute(insert, ["lamp"]);
   *     const id = returned.one().get("id", z.int());
   *     transaction.execute("INSERT INTO log (item) VALUES ($1)", [id]);
   *   }),
   * );
   * const statements = host.statements().map((statement) => statement.text);
   * assert.equal(statements.at(-1), "COMMIT");
   * ```
   */
  transaction<T>(work: (transaction: Transaction) => T): T {
    const transaction = this.begin();
    let result: T;
    try {
      result = work(transaction);
      checkSynchronous("the work of a transaction", result);
    } catch (error) {
      rollBack(transaction);
      throw error;
    }
    transaction.commit();
    return result;
  }

  /**
   * Starts a transaction, which the caller must commit. Its commit is recorded in the database itself,
   * so that a node that is executed again after a crash does not repeat it. A transaction without a
   * commit is rolled back at the end of the node.
   */
  begin(): Transaction {
    return new Transaction(host.begin(this.#name));
  }

  /** Returns the dialect of the database. */
  dialect(): Dialect {
    return host.dialect(this.#name);
  }
}

/** A transaction. {@link Database.transaction} and {@link Database.begin} start it. */
export class Transaction {
  readonly #handle: TransactionHandle;

  /** Creates a transaction. */
  constructor(handle: TransactionHandle) {
    this.#handle = handle;
  }

  /** Executes a statement that reads. */
  query(statement: string, parameters: readonly Value[] = []): Rows {
    return this.#handle.query(statement, checked(parameters));
  }

  /** Executes a statement that writes. */
  execute(statement: string, parameters: readonly Value[] = []): Executed {
    return this.#handle.execute(statement, checked(parameters));
  }

  /** Commits the transaction. The transaction ends even if the commit fails. */
  commit(): void {
    this.#handle.commit();
  }

  /** Rolls back the transaction. */
  rollback(): void {
    this.#handle.rollback();
  }
}

/**
 * Returns a handle to the database with a name. The first call checks the name.
 *
 * ```ts
 * import { sql } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const host = new FakeHost().sql((statement) => {
 *   assert.equal(statement.database, "asset");
 *   return new sql.Rows(["id", "name"], [[7, "lamp"]]);
 * });
 * host.run(() => {
 *   const rows = sql.database("asset").query("SELECT id, name FROM item WHERE id = $1", [7]);
 *   for (const row of rows) {
 *     assert.equal(row.get("id", z.int()), 7);
 *     assert.equal(row.get("name", z.string().nullable()), "lamp");
 *   }
 * });
 * ```
 */
export function database(name: string): Database {
  return new Database(name);
}

/** Rolls back a transaction whose work has failed. The failure of the work is the one to report. */
export function rollBack(transaction: Transaction): void {
  try {
    transaction.rollback();
  } catch {
    // The host rolls back whatever has no commit at the end of the node.
  }
}

/** Checks parameters, whose types plain JavaScript may ignore. */
function checked(parameters: readonly Value[]): Value[] {
  parameters.forEach((value, index) => {
    const wrong = wrongType(value);
    if (wrong !== undefined) throw Failure.invalid(`the parameter \`$${index + 1}\` ${wrong}`);
  });
  return [...parameters];
}

function wrongType(value: unknown): string | undefined {
  if (value === undefined) return "is undefined; use null";
  if (typeof value === "number" && !Number.isFinite(value)) return `is ${value}`;
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return "is an integer beyond 2^53; use a bigint, or `sql.real` for a floating-point number";
  }
  if (value instanceof Inexact) return "is an integer that was rounded";
  if (typeof value === "object" && value !== null && value.constructor === Object) {
    return "is an object; use `sql.json`";
  }
  return Array.isArray(value) ? "is an array; use `sql.json`" : undefined;
}
