// Measures the first view of each page and of the studio: the entry document, and the scripts and
// style sheets that it loads before the user acts, compressed as browsers get them.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Maximum size of the first view of an app's page. */
const PAGE_BYTES = 200 * 1024;

/** Maximum size of the first view of the studio, which has a router and more parts than a page. */
const STUDIO_BYTES = 300 * 1024;

const ENTRY = "index.html";

const APPS = fileURLToPath(new URL("../../apps", import.meta.url));

const STUDIO = fileURLToPath(new URL("../../../host/studio", import.meta.url));

/** Returns what is measured, with its limit. */
function views() {
  const names = readdirSync(APPS).filter((name) =>
    existsSync(join(APPS, name, "page/package.json")),
  );
  const pages = names.map((name) => ({
    name,
    dist: join(APPS, name, "page/dist"),
    limit: PAGE_BYTES,
  }));
  return [...pages, { name: "the studio", dist: join(STUDIO, "dist"), limit: STUDIO_BYTES }];
}

/** Returns the files of the first view: the entry and everything that it imports statically. */
function firstView(manifest) {
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

/**
 * Returns the size of a file as it is sent. The build writes a compressed sibling if it is smaller.
 */
function weigh(file) {
  const compressed = `${file}.br`;
  return statSync(existsSync(compressed) ? compressed : file).size;
}

/** Measures a first view. Returns true if it is within the limit. */
function isLight({ name, dist, limit }) {
  const manifest = JSON.parse(readFileSync(join(dist, "manifest.json"), "utf8"));
  const weights = firstView(manifest).map((file) => ({ file, bytes: weigh(join(dist, file)) }));
  const total = weights.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { file, bytes } of weights) console.log(`${bytes.toString().padStart(8)}  ${file}`);
  console.log(`${total.toString().padStart(8)}  of ${limit} bytes: ${name}`);
  return total <= limit;
}

/** Fails if a page is not built, or if its first view is over the limit. */
export function size() {
  const built = views();
  const missing = built.filter(({ dist }) => !existsSync(join(dist, "manifest.json")));
  if (missing.length > 0) {
    const list = missing.map(({ name }) => name).join(", ");
    throw new Error(`not built: ${list}; \`npm run build\` builds the pages`);
  }
  const heavy = built.filter((view) => !isLight(view)).map(({ name }) => name);
  if (heavy.length > 0) throw new Error(`the first view is too large: ${heavy.join(", ")}`);
}
