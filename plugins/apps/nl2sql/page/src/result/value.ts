// Cells of a result: their types and how they are shown.
import type { Result, Row } from "../chat/types.ts";

/** A number as text. Databases return decimals and large integers as texts, to keep every digit. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?$/;

/** Returns the number in a cell, if it is one. */
export function numberOf(cell: unknown): number | undefined {
  if (typeof cell === "number") return cell;
  return typeof cell === "string" && NUMBER.test(cell) ? Number(cell) : undefined;
}

/** Returns the text that shows a cell. */
export function textOf(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

/** Returns the names of the columns, in the order of the statement. */
export function columnsOf(rows: readonly Row[]): string[] {
  return Object.keys(rows[0] ?? {});
}

/** Returns true if all cells of a column that are not null are numbers. */
export function isNumeric(rows: readonly Row[], column: string): boolean {
  const cells = rows.map((row) => row[column]).filter((cell) => cell !== null);
  return cells.length > 0 && cells.every((cell) => numberOf(cell) !== undefined);
}

/**
 * Returns the rows to show. Equal rows of a list are shown once, as in the file and in the text.
 */
export function distinct(rows: readonly Row[], operation?: string): readonly Row[] {
  if (operation !== "detail" && operation !== "ranking") return rows;
  const seen = new Set<string>();
  return rows.filter((row) => {
    const text = JSON.stringify(row);
    return !seen.has(text) && seen.add(text);
  });
}

/** Returns the rows that an answer contains. */
export function rowsOf(result: Result): readonly Row[] {
  const validated = result.sql_validate_result;
  if (validated === null || !validated.is_valid || validated.empty_result) return [];
  return validated.result;
}
