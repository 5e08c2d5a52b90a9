// Inputs and outputs that are the same in the SDKs for Rust, TypeScript and Python.

import { readFileSync } from "node:fs";
import type { Json } from "wattle-plugin";

/** A date. */
type YearMonthDay = [year: number, month: number, day: number];

/** The cases by function. */
interface Vectors {
  fill: Array<[template: string, values: Record<string, string>, expected: string]>;
  is_answer: Array<[text: string, expected: boolean]>;
  head: Array<[text: string, chars: number, expected: string]>;
  quoted: Array<[text: string, chars: number, end: string, expected: string]>;
  redacted: Array<[document: Json, expected: Json]>;
  utc: Array<[unixMs: number, milliseconds: string, seconds: string]>;
  iso: Array<[unixMs: number, offsetSeconds: number, iso: string, digits: string]>;
  plus_days: Array<[day: YearMonthDay, days: number, then: YearMonthDay | null]>;
  days_in_month: Array<[year: number, month: number, expected: number | null]>;
  redacted_with_additions: Array<[document: Json, expected: Json]>;
}

const FILE = new URL("../../vectors.json", import.meta.url);

/** The cases. The tests of the other SDKs read the same file. */
export const vectors = JSON.parse(readFileSync(FILE, "utf8")) as Vectors;
