// Filters of a search, with the semantics of the host.

import { Failure } from "../failure.ts";
import type { Extra, Json } from "../json.ts";

const OPERATORS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"];

/** A condition on a field. */
export interface Condition {
  field: string;
  operator: string;
  value: Json;
}

/** Parses a filter. */
export function conditionsOf(filter: Extra): Condition[] {
  return Object.entries(filter).flatMap(([field, value]) => {
    if (field.startsWith("$")) throw invalid(field);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const operators = isObject ? Object.entries(value) : [];
    if (!operators.some(([operator]) => operator.startsWith("$"))) {
      return [{ field, operator: "$eq", value }];
    }
    return operators.map(([operator, operand]) => {
      if (!OPERATORS.includes(operator)) throw invalid(operator);
      return { field, operator, value: operand };
    });
  });
}

function invalid(what: string): Failure {
  const known = OPERATORS.map((operator) => `\`${operator}\``).join(", ");
  return Failure.invalid(
    `a filter maps fields to values, or to the operators ${known}, not to \`${what}\``,
  );
}

/** Returns true if a document satisfies a condition. */
export function holds({ field, operator, value }: Condition, document: Json): boolean {
  const fields = typeof document === "object" && document !== null ? (document as Extra) : {};
  const found = Object.hasOwn(fields, field) ? (fields[field] ?? null) : null;
  const isEqual = JSON.stringify(found) === JSON.stringify(value);
  const order = compare(found, value);
  switch (operator) {
    case "$eq":
      return isEqual;
    case "$ne":
      return !isEqual;
    case "$gt":
      return order !== undefined && order > 0;
    case "$gte":
      return order !== undefined && order >= 0;
    case "$lt":
      return order !== undefined && order < 0;
    default:
      return order !== undefined && order <= 0;
  }
}

/** Compares two numbers or two texts. Others have no order. */
function compare(one: Json, other: Json): number | undefined {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one !== "string" || typeof other !== "string") return undefined;
  return one === other ? 0 : one < other ? -1 : 1;
}
