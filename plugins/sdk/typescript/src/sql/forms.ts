// SQL values as JavaScript values, and rows as types. They cover differences between the databases.

import { type $ZodIssue, type output, safeParse } from "zod/v4/core";
import { Failure } from "../failure.ts";
import { pathOf, type Type } from "../json.ts";
import type { Column } from "./rows.ts";
import { Inexact, JsonValue, Other, Real, type Value } from "./value.ts";

/** Returns the JavaScript values that an SQL value can mean, the likeliest first. */
export function* formsOf(value: Value): Generator<unknown, void> {
  if (value instanceof JsonValue || value instanceof Real) {
    yield value.value;
  } else if (value instanceof Other) {
    yield value.text;
    const number = Number(value.text);
    if (value.text.trim() !== "" && Number.isFinite(number)) yield number;
  } else {
    yield value;
    if (value === 0 || value === 1) yield value === 1;
    if (typeof value === "string") yield* parsed(value);
  }
}

function parsed(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

/** Returns a row as a type. Values that do not fit have their next form. */
export function readRow<T extends Type>(
  columns: readonly Column[],
  values: readonly Value[],
  type: T,
): output<T> {
  const forms = new Map<unknown, Generator<unknown, void>>();
  const fields: Record<string, unknown> = {};
  columns.forEach(({ name }, index) => {
    const form = formsOf(values[index] ?? null);
    fields[name] = form.next().value;
    forms.set(name, form);
  });
  // The failure is about the likeliest form of a value.
  const issues = new Map<unknown, $ZodIssue>();
  for (;;) {
    const result = safeParse(type, fields);
    if (result.success) return exact(result.data);
    for (const issue of result.error.issues) {
      if (!issues.has(issue.path[0])) issues.set(issue.path[0], issue);
    }
    let hasNext = false;
    for (const name of new Set(result.error.issues.map(({ path }) => path[0]))) {
      const next = forms.get(name)?.next();
      if (next === undefined || next.done === true) continue;
      fields[name as string] = next.value;
      hasNext = true;
    }
    if (!hasNext) throw unfit(result.error.issues[0] as $ZodIssue, fields, issues);
  }
}

/** Refuses a number that was rounded. The type of its field may accept anything. */
function exact<T>(row: T): T {
  for (const [name, value] of Object.entries(row ?? {})) {
    if (value instanceof Inexact) throw value.failure(`column \`${name}\``);
  }
  return row;
}

function unfit(
  last: $ZodIssue,
  fields: Readonly<Record<string, unknown>>,
  issues: ReadonlyMap<unknown, $ZodIssue>,
): Failure {
  const [name] = last.path;
  if (name === undefined) return Failure.invalid(`read a row: ${last.message}`);
  if (!Object.hasOwn(fields, name)) {
    return Failure.invalid(`read a row: missing field \`${String(name)}\``);
  }
  const column = `column \`${String(name)}\``;
  const value = fields[name as string];
  if (value instanceof Inexact) return value.failure(column);
  const issue = issues.get(name) ?? last;
  const path = pathOf({ ...issue, path: issue.path.slice(1) });
  const place = path === "." ? "" : ` at \`${path}\``;
  return Failure.invalid(`read a row: ${column}${place}: ${issue.message}`);
}
