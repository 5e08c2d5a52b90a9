// Results of statements: rows and their columns.

import { type output, safeParse } from "zod/v4/core";
import { code, Failure } from "../failure.ts";
import type { Extra, Type } from "../json.ts";
import { formsOf, readRow } from "./forms.ts";
import { type Budget, bytesOf, type Newest, Page } from "./page.ts";
import { Inexact, kindOf, type Value, valueToJson } from "./value.ts";

/** A column of a result. */
export interface Column {
  /** Name of the column. */
  name: string;
  /** Type in the database, in lower case. Empty if the database does not report it. */
  typeName: string;
}

/** Rows of a query. They iterate over their rows. */
export class Rows implements Iterable<Row> {
  /** Columns of the result. */
  readonly columns: Column[];
  /** Values of each row, in the order of the columns. */
  readonly values: Value[][];
  /** True if rows are missing because the result exceeds the operator's limit on rows or size. */
  readonly truncated: boolean;

  /** Builds rows, for tests. */
  constructor(
    columns: ReadonlyArray<Column | string> = [],
    values: Value[][] = [],
    truncated = false,
  ) {
    this.columns = columns.map((it) => (typeof it === "string" ? { name: it, typeName: "" } : it));
    this.values = values;
    this.truncated = truncated;
  }

  /** Number of rows. */
  get length(): number {
    return this.values.length;
  }

  /** Returns the first row, or `undefined` if there are none. */
  first(): Row | undefined {
    const [values] = this.values;
    return values && new Row(this.columns, values);
  }

  /**
   * Returns the first row.
   *
   * @throws `not-found` if there are no rows.
   */
  one(): Row {
    const row = this.first();
    if (row === undefined) throw Failure.notFound("the query found no row");
    return row;
  }

  /**
   * Returns the rows if none is missing, for lists that a program takes for the whole.
   *
   * ```ts
   * import { sql } from "wattle-plugin";
   *
   * assert.equal(new sql.Rows(["id"], [[7]]).whole().length, 1);
   * const truncated = new sql.Rows(["id"], [[7]], true);
   * assert.throws(() => truncated.whole(), { code: "limit" });
   * ```
   *
   * @throws `limit` if the result is truncated.
   */
  whole(): this {
    if (this.truncated) throw tooLarge();
    return this;
  }

  /** Iterates over the rows. */
  *[Symbol.iterator](): Generator<Row, void> {
    for (const values of this.values) yield new Row(this.columns, values);
  }

  /** Returns the values of a column as a type. */
  column<T extends Type>(name: string, type: T): Array<output<T>> {
    return Array.from(this, (row) => row.get(name, type));
  }

  /** Returns the rows as values of a type, see {@link Row.read}. */
  readAll<T extends Type>(type: T): Array<output<T>> {
    return Array.from(this, (row) => row.read(type));
  }

  /** Returns the first row as a value of a type, if there is one, see {@link Row.read}. */
  readFirst<T extends Type>(type: T): output<T> | undefined {
    return this.first()?.read(type);
  }

  /**
   * Returns the first rows as a page of at most `limit` items, of which all but the first fit into
   * `budget` bytes of JSON, such as `web.PAGE_BYTES`. The query selects one row more than `limit`,
   * which tells a full page from the last one.
   *
   * ```ts
   * import { sql, web } from "wattle-plugin";
   * import { FakeHost } from "wattle-plugin/testing";
   * import * as z from "zod";
   *
   * const Entry = z.object({ id: z.int() });
   * const SELECT = "SELECT id FROM entry WHERE id > $1 ORDER BY id LIMIT $2";
   *
   * // Returns a page of entries, and the value of `after` for the next page.
   * function entries(after: number, limit: number) {
   *   const rows = sql.database("chat").query(SELECT, [after, limit + 1]);
   *   const page = rows.page(Entry, limit, web.PAGE_BYTES);
   *   return { items: page.items, next: page.nextCursor((last) => last.id) };
   * }
   *
   * const host = new FakeHost().sql(() => new sql.Rows(["id"], [[7], [8]]));
   * assert.deepEqual(host.run(() => entries(6, 1)), { items: [{ id: 7 }], next: 7 });
   * ```
   *
   * @throws `limit` if the result is truncated before its first row, because no next page could begin
   * after it. `invalid` if a row does not fit the type.
   */
  page<T extends Type>(type: T, limit: number, budget: number): Page<output<T>> {
    if (this.truncated && this.length === 0) throw tooLarge();
    const items: Array<output<T>> = [];
    let left = budget;
    for (const row of this) {
      if (items.length >= limit) break;
      const item = row.read(type);
      const bytes = bytesOf(item);
      if (bytes > left && items.length > 0) break;
      left = Math.max(left - bytes, 0);
      items.push(item);
    }
    return new Page(items, this.truncated || items.length < this.length);
  }

  /**
   * Returns the rows, the newest first in the result of the query, while their JSON fits into the
   * budget. Several lists of one response share the budget.
   *
   * ```ts
   * import { sql } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const rows = new sql.Rows(["n"], [[3], [2], [1]]);
   * const budget = { bytes: 20 };
   * const newest = rows.newest(z.object({ n: z.int() }), budget);
   * assert.deepEqual(newest, { items: [{ n: 2 }, { n: 3 }], truncated: true });
   * assert.equal(budget.bytes, 4);
   * ```
   *
   * @throws `invalid` if a row does not fit the type.
   */
  newest<T extends Type>(type: T, budget: Budget): Newest<output<T>> {
    const items: Array<output<T>> = [];
    for (const row of this) {
      const item = row.read(type);
      const bytes = bytesOf(item);
      if (bytes > budget.bytes) break;
      budget.bytes -= bytes;
      items.push(item);
    }
    const truncated = this.truncated || items.length < this.length;
    return { items: items.reverse(), truncated };
  }

  /** Returns the rows as JSON objects. */
  toJson(): Extra[] {
    return Array.from(this, (row) => row.toJson());
  }
}

/** Returns the failure for a truncated result. */
function tooLarge(): Failure {
  const message = "the result exceeds the limit on rows or size; query fewer rows";
  return new Failure(code.LIMIT, message);
}

/** A row of a result. */
export class Row {
  readonly #columns: readonly Column[];
  readonly #values: readonly Value[];

  /** Creates a row. */
  constructor(columns: readonly Column[], values: readonly Value[]) {
    this.#columns = columns;
    this.#values = values;
  }

  /** Returns the value of a column as the database has it. */
  value(column: string): Value {
    const index = this.#columns.findIndex((known) => known.name === column);
    const value = this.#values[index];
    if (value !== undefined) return value;
    throw Failure.invalid(`the query has no column \`${column}\`; name it in the \`SELECT\``);
  }

  /**
   * Returns the value of a column as a type.
   *
   * The conversion covers differences between the databases: 0 and 1 are booleans, a decimal number is
   * a number, and JSON may be stored as text.
   *
   * @throws `invalid` if the result has no such column, or if its value does not fit the type.
   */
  get<T extends Type>(column: string, type: T): output<T> {
    const value = this.value(column);
    if (value instanceof Inexact) throw value.failure(`column \`${column}\``);
    let issue = "";
    for (const form of formsOf(value)) {
      const result = safeParse(type, form);
      if (result.success) return result.data;
      issue ||= result.error.issues[0]?.message ?? "";
    }
    throw Failure.invalid(`column \`${column}\` is ${kindOf(value)}: ${issue}`);
  }

  /**
   * Returns the row as a value of a type whose fields have the names of the columns. Other columns are
   * ignored. Values convert as by {@link get}, and a field that may be null is `nullable()`.
   *
   * ```ts
   * import { sql } from "wattle-plugin";
   * import * as z from "zod";
   *
   * const Item = z.object({
   *   id: z.int(),
   *   is_sold: z.boolean(),
   *   price: z.number().nullable(),
   *   labels: z.array(z.string()),
   * });
   *
   * const columns = ["id", "is_sold", "price", "labels"];
   * // SQLite has no booleans and stores JSON as text.
   * const rows = new sql.Rows(columns, [[7, 1, null, '["old"]']]);
   * const item = rows.one().read(Item);
   * assert.deepEqual(item, { id: 7, is_sold: true, price: null, labels: ["old"] });
   * ```
   *
   * @throws `invalid` if a field has no column, or if the value of a column does not fit its field.
   */
  read<T extends Type>(type: T): output<T> {
    return readRow(this.#columns, this.#values, type);
  }

  /** Returns the row as a JSON object. */
  toJson(): Extra {
    const fields = this.#columns.map(({ name }, index) => {
      return [name, valueToJson(`column \`${name}\``, this.#values[index] ?? null)] as const;
    });
    return Object.fromEntries(fields);
  }
}

/** The effect of a statement that writes. */
export interface Executed {
  /** Number of rows that the statement changed. */
  rowsAffected: number;
  /** Rows of a `RETURNING` clause. Empty if the statement has none. */
  returned: Rows;
}
