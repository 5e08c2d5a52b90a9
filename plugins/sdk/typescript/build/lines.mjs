// The places of lines of a bundle in the files of the plugin. The bundle has them within, so that the
// failure of a call names files of the plugin.

import { relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { decode } from "@jridgewell/sourcemap-codec";

/** Key of the global object, as in `src/stack.ts`. */
const LINES = "wattle:lines";

/** Folders of the SDK itself: its sources, or its modules in the published package. */
const SDK = ["../src/", "../lib/"].map((path) => fileURLToPath(new URL(path, import.meta.url)));

/**
 * Returns the places of lines: the files, and the runs of lines `[line, length, file, first]` whose
 * places follow each other. Lines are counted from 1.
 */
export function linesOf(map, folder) {
  const paths = map.sources.map((source) => resolve(folder, source));
  const isOfSdk = (path) => SDK.some((folder) => path.startsWith(folder));
  const isOwn = (path) => !path.includes("/node_modules/") && !isOfSdk(path);
  const files = [];
  const numbers = paths.map((path, index) => {
    const isSource = map.sources[index] !== "wattle-entry.js" && isOwn(path);
    return isSource ? files.push(relative(folder, path).replaceAll("\\", "/")) - 1 : undefined;
  });
  const runs = [];
  let last;
  decode(map.mappings).forEach((segments, index) => {
    const mapped = segments.filter((it) => it.length > 1);
    const segment = firstOf(mapped, last);
    last = mapped.at(-1) ?? last;
    const file = segment && numbers[segment[1]];
    if (file === undefined) return;
    add(runs, index + 1, file, segment[2] + 1);
  });
  return { files, runs };
}

/**
 * Returns the first segment of a line, or `undefined`. esbuild repeats the last position of the lines
 * before at the start of a line whose first position comes after the indentation; such a repetition
 * counts only if the line has no other segment.
 */
function firstOf([first, second], last) {
  const isRepeated =
    last !== undefined &&
    first !== undefined &&
    first[0] === 0 &&
    [1, 2, 3].every((field) => first[field] === last[field]);
  return isRepeated && second !== undefined ? second : first;
}

/** Adds a line to the last run, or begins another one. */
function add(runs, line, file, place) {
  const last = runs.at(-1);
  const follows =
    last !== undefined &&
    last[0] + last[1] === line &&
    last[2] === file &&
    last[3] + last[1] === place;
  if (follows) last[1]++;
  else runs.push([line, 1, file, place]);
}

/** Appends the places to a bundle, whose other lines stay where they are. */
export function withLines(code, lines) {
  const end = code.endsWith("\n") ? "" : "\n";
  return `${code}${end}globalThis[${JSON.stringify(LINES)}] = ${JSON.stringify(lines)};\n`;
}

/**
 * Replaces lines of the bundle in a text by their places, and removes frames of a stack that have none.
 */
export function placesIn(text, { files, runs }) {
  const placed = text.replace(/[^\s()@]*plugin\.js:(\d+)(?::\d+)?/g, (whole, number) => {
    const line = Number(number);
    const run = runs.find(([start, length]) => line >= start && line < start + length);
    return run === undefined ? whole : `${files[run[2]]}:${run[3] + line - run[0]}`;
  });
  return placed
    .split("\n")
    .filter((line) => !/^\s*(at .*|.*@)\(?[^\s()@]*plugin\.js:\d/.test(line))
    .join("\n");
}
