// The weight of a first view: the entry document, and the scripts and style sheets that it loads
// before a user does anything, compressed as a browser gets them.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { brotliCompressSync } from "node:zlib";

/** The most that a first view may weigh. */
const LIMIT_BYTES = 200 * 1024;

const ENTRY = "index.html";

/** The files of the first view: the entry and everything that it imports statically. */
export function firstView(manifest) {
  const files = new Set([ENTRY]);
  const visited = new Set();
  const waiting = [ENTRY];
  for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
    if (visited.has(key)) continue;
    visited.add(key);
    const chunk = manifest[key];
    if (chunk === undefined) throw new Error(`the manifest has no \`${key}\``);
    for (const file of [chunk.file, ...(chunk.css ?? [])]) files.add(file);
    waiting.push(...(chunk.imports ?? []));
  }
  return [...files];
}

/** Fails if the first view of the page in the current folder is over the limit. */
export function size() {
  const dist = resolve("dist");
  const manifest = JSON.parse(readFileSync(join(dist, "manifest.json"), "utf8"));
  const weights = firstView(manifest).map((file) => {
    const bytes = brotliCompressSync(readFileSync(join(dist, file))).length;
    return { file, bytes };
  });
  const total = weights.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { file, bytes } of weights) console.log(`${bytes.toString().padStart(8)}  ${file}`);
  console.log(`${total.toString().padStart(8)}  of ${LIMIT_BYTES} bytes`);
  if (total > LIMIT_BYTES) throw new Error("the first view is too large");
}
