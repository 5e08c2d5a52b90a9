// Twins of the misdeeds in Rust: each must end like its twin there. `explore` is the twin of the node
// of `tests/guests/foreign`.

import { node, plugin } from "wattle-plugin";
import * as z from "zod";

/** Size of one allocation of `hog`, in bytes. */
const MOUTHFUL_BYTES = 1 << 20;

const Num = z.object({ number: z.int().optional() });

const counter = node(
  "counter",
  { doc: "Adds one to `number`.", input: Num, output: z.object({ number: z.int() }) },
  ({ number }) => ({ number: (number ?? 0) + 1 }),
);

const spin = node("spin", { doc: "Loops forever." }, () => {
  for (;;);
});

const hog = node("hog", { doc: "Allocates until the host ends it." }, () => {
  const kept: Uint8Array[] = [];
  for (;;) kept.push(new Uint8Array(MOUTHFUL_BYTES).fill(1));
});

const trap = node("trap", { doc: "Throws an exception." }, blunder);

function blunder(): never {
  throw new RangeError("a misdeed");
}

const hugeOutput = node(
  "huge_output",
  {
    doc: "Writes a text of `size` bytes to `text`.",
    input: z.object({ size: z.int() }),
    output: z.object({ text: z.string() }),
  },
  ({ size }) => ({ text: "x".repeat(size) }),
);

const deepJson = node(
  "deep_json",
  {
    doc: "Writes arrays nested `depth` levels deep to `value`.",
    input: z.object({ depth: z.int() }),
    output: z.object({ value: z.unknown() }),
  },
  ({ depth }) => {
    let value: unknown = null;
    for (let level = 0; level < depth; level += 1) value = [value];
    return { value };
  },
);

// biome-ignore lint/suspicious/noExplicitAny: the type checker knows that none of these exists.
const globals: Record<string, any> = globalThis;

/** Each attempt throws if the engine or the host refuses it. */
const ATTEMPTS: ReadonlyArray<[name: string, attempt: () => unknown]> = [
  ["read a file", () => globals.process.getBuiltinModule("fs").readFileSync("/etc/hostname")],
  ["load a file", () => globals.std.loadFile("/etc/hostname").length],
  ["list the root", () => globals.Deno.readDirSync("/")],
  ["write a file", () => globals.std.open("found", "w").puts("x")],
  ["environment", () => globals.process.env.PATH.length],
  ["the environment of QuickJS", () => globals.std.getenviron().PATH.length],
  ["arguments", () => globals.scriptArgs.length],
  ["connect", () => new globals.WebSocket("ws://127.0.0.1:80")],
  ["fetch", () => globals.fetch("http://127.0.0.1:80/")],
  ["load a module", () => globals.require("os")],
  ["start a process", () => globals.os.exec(["true"])],
];

const explore = node(
  "explore",
  {
    doc: "Tries files, environment, arguments and sockets.",
    output: z.object({ reached: z.array(z.string()), refused: z.record(z.string(), z.string()) }),
  },
  () => {
    const reached: string[] = [];
    const refused: Record<string, string> = {};
    for (const [name, attempt] of ATTEMPTS) {
      const refusal = refusalOf(attempt);
      if (refusal === undefined) reached.push(name);
      else refused[name] = refusal;
    }
    return { reached, refused };
  },
);

/** Returns the name of the exception of an attempt, or `undefined` if the attempt works. */
function refusalOf(attempt: () => unknown): string | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

const marks: string[] = [];

class Marks {
  static marked = false;
  declare marked?: boolean;
}

/** Places in which a mark could outlast a call, each with functions that find and leave a mark. */
const PLACES: ReadonlyArray<[name: string, isMarked: () => boolean, mark: () => void]> = [
  ["a variable", () => marks.length > 0, () => marks.push("a call")],
  ["a static property", () => Marks.marked, () => (Marks.marked = true)],
  ["a prototype", () => "marked" in new Marks(), () => (Marks.prototype.marked = true)],
  ["a global property", () => "marked" in globals, () => (globals.marked = true)],
];

const places = (marked: boolean): string[] =>
  PLACES.filter(([, isMarked]) => isMarked() === marked).map(([name]) => name);

const recollect = node(
  "recollect",
  {
    doc: "Looks for marks of earlier calls, and leaves a mark in every place.",
    output: z.object({ recollected: z.array(z.string()), forgotten: z.array(z.string()) }),
  },
  () => {
    const recollected = places(true);
    for (const [, , mark] of PLACES) mark();
    return { recollected, forgotten: places(false) };
  },
);

export default plugin(counter, spin, hog, trap, hugeOutput, deepJson, explore, recollect);
