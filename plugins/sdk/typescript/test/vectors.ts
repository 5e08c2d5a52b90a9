// Inputs and outputs that are the same in the SDKs for Rust, TypeScript and Python.

import { readFileSync } from "node:fs";

/** The cases by function. */
interface Vectors {
  head: Array<[text: string, chars: number, expected: string]>;
  quoted: Array<[text: string, chars: number, end: string, expected: string]>;
}

const FILE = new URL("../../vectors.json", import.meta.url);

/** The cases. The tests of the other SDKs read the same file. */
export const vectors = JSON.parse(readFileSync(FILE, "utf8")) as Vectors;
