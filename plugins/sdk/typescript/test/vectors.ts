// Inputs and outputs that are the same in the SDKs for Rust, TypeScript and Python.

import { readFileSync } from "node:fs";
import type { Json } from "wattle-plugin";

/** The cases by function. */
interface Vectors {
  head: Array<[text: string, chars: number, expected: string]>;
  quoted: Array<[text: string, chars: number, end: string, expected: string]>;
  redacted: Array<[document: Json, expected: Json]>;
  redacted_with_additions: Array<[document: Json, expected: Json]>;
}

const FILE = new URL("../../vectors.json", import.meta.url);

/** The cases. The tests of the other SDKs read the same file. */
export const vectors = JSON.parse(readFileSync(FILE, "utf8")) as Vectors;
