// Results of statements: rows and their columns.

import { type output, safeParse } from "zod/v4/core";
import { Failure } from "../failure.ts";
import type { Extra, Type } from "../json.ts";
import { Inexact, JsonValue, kindOf, Other, Real, type Value, valueToJson } from "./value.ts";

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

  /** Iterates over the rows. */
  *[Symbol.iterator](): Generator<Row, void> {
    for (const values of this.values) yield new Row(this.columns, values);
  }

  /** Returns the values of a column as a type. */
  column<T extends Type>(name: string, type: T): Array<output<T>> {
    return Array.from(this, (row) => row.get(name, type));
  }

  /** Returns the rows as JSON objects. */
  toJson(): Extra[] {
    return Array.from(this, (row) => row.toJson());
  }
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

  /** Returns the row as a JSON object. */
  toJson(): Extra {
    const fields = this.#columns.map(({ name }, index) => {
      return [name, valueToJson(`column \`${name}\``, this.#values[index] ?? null)] as const;
    });
    return Object.fromEntries(fields);
  }
}

/** Returns the JavaScript values that an SQL value can mean, the likeliest first. */
function formsOf(value: Value): unknown[] {
  if (value === 0 || value === 1) return [value, value === 1];
  if (value instanceof JsonValue) return [value.value];
  if (value instanceof Real) return [value.value];
  if (value instanceof Other) {
    const number = Number(value.text);
    const isNumber = value.text.trim() !== "" && Number.isFinite(number);
    return isNumber ? [value.text, number] : [value.text];
  }
  return typeof value === "string" ? [value, ...parsed(value)] : [value];
}

function parsed(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

/** The effect of a statement that writes. */
export interface Executed {
  /** Number of rows that the statement changed. */
  rowsAffected: number;
  /** Rows of a `RETURNING` clause. Empty if the statement has none. */
  returned: Rows;
}
