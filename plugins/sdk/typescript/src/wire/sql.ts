// Calls of `sql`.

import * as raw from "wattle:plugin/sql@0.1.0";
import { Failure } from "../failure.ts";
import {
  type Executed,
  Inexact,
  JsonValue,
  Other,
  Real,
  Rows,
  type TransactionHandle,
  type Value,
} from "../sql/index.ts";
import { call, value as parsed, text } from "./convert.ts";

export function query(database: string, statement: string, parameters: Value[]): Rows {
  const values = parameters.map(rawValue);
  return rows(call(() => raw.query(database, statement, values)));
}

export function execute(database: string, statement: string, parameters: Value[]): Executed {
  const values = parameters.map(rawValue);
  return executed(call(() => raw.execute(database, statement, values)));
}

export function dialect(database: string): string {
  return call(() => raw.dialect(database));
}

export function begin(database: string): TransactionHandle {
  const resource = call(() => raw.begin(database));
  return {
    query: (statement, parameters) => {
      const values = parameters.map(rawValue);
      return rows(call(() => resource.query(statement, values)));
    },
    execute: (statement, parameters) => {
      const values = parameters.map(rawValue);
      return executed(call(() => resource.execute(statement, values)));
    },
    commit: () => call(() => resource.commit()),
    rollback: () => call(() => resource.rollback()),
  };
}

function rawValue(value: Value, index: number): raw.Value {
  if (value === null) return { tag: "null" };
  if (typeof value === "boolean") return { tag: "boolean", val: value };
  if (typeof value === "string") return { tag: "text", val: value };
  if (typeof value === "bigint") return { tag: "integer", val: integer(value, index) };
  if (typeof value === "number") {
    return { tag: Number.isInteger(value) ? "integer" : "real", val: value };
  }
  if (value instanceof Real) return { tag: "real", val: value.value };
  if (value instanceof JsonValue) return { tag: "json", val: text(value.value) };
  if (value instanceof Other) return { tag: "other", val: value.text };
  if (value instanceof Inexact) throw value.failure(`the parameter \`$${index + 1}\``);
  return { tag: "bytes", val: value };
}

/** QuickJS has numbers at the border of a component, and StarlingMonkey takes them as well. */
function integer(value: bigint, index: number): number | bigint {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  if (!isQuickJs()) return value;
  throw Failure.invalid(
    `the parameter \`$${index + 1}\` is an integer beyond 2^53, which QuickJS cannot write; pass it ` +
      "as text, as `CAST($1 AS BIGINT)`, or build with `--engine starlingmonkey`",
  );
}

function isQuickJs(): boolean {
  return "__cqjs" in globalThis;
}

function rows(rows: raw.Rows): Rows {
  const values = rows.rows.map((row) => row.map(value));
  return new Rows(rows.columns, values, rows.truncated);
}

function executed(executed: raw.Executed): Executed {
  return { rowsAffected: Number(executed.rowsAffected), returned: rows(executed.returned) };
}

function value(raw: raw.Value): Value {
  switch (raw.tag) {
    case "null":
      return null;
    case "integer":
      return exact(raw.val);
    case "real":
      return Number.isInteger(raw.val) ? new Real(raw.val) : raw.val;
    case "json":
      return new JsonValue(parsed(raw.val));
    case "other":
      return new Other(raw.val);
    default:
      return raw.val;
  }
}

function exact(integer: number | bigint): number | bigint | Inexact {
  const number = Number(integer);
  if (Number.isSafeInteger(number)) return number;
  return typeof integer === "bigint" ? integer : new Inexact(integer);
}
