// A case of a data set, made of a run: what `wattle eval` and `wattle test` read.
import type { Thread } from "../api/thread.ts";

/** A run that can become a case: its graph, its input and context, and the thread after it. */
export interface CaseRun {
  graph: string;
  input: unknown;
  /** `undefined` if the run has none. */
  context?: unknown;
  /** `completed`, `interrupted`, `failed` or `cancelled`. */
  status: string;
  thread: Pick<Thread, "state" | "interrupts"> & { failure?: { code: string } | null | undefined };
}

/** Expectations by pointer. */
export type Expectations = Readonly<Record<string, unknown>>;

/** Characters of a value as JSON that is expected as it is. A person reads the case. */
const EXPECTED_CHARS = 2_000;

const NAME = /^[a-z0-9-]+$/;

/** Returns true if a case can have this name. */
export function isCaseName(name: string): boolean {
  return NAME.test(name);
}

/**
 * Returns what a run did as expectations: its status, and what it wrote besides its input, asked or
 * failed with. Values that are long, or that would be read as matchers, are left out.
 */
export function expectationsOf({ input, status, thread }: CaseRun): Expectations {
  const { state, interrupts, failure } = thread;
  const expected: Record<string, unknown> = { "/status": status };
  const [question] = interrupts;
  if (status === "interrupted" && question !== undefined) {
    if (isPlain(question.payload)) expected["/interrupt"] = question.payload;
  }
  if (status === "failed" && failure != null) expected["/failure/code"] = failure.code;
  if (status !== "completed") return expected;
  const given = Object(input);
  for (const [channel, value] of Object.entries(Object(state))) {
    const isNew = JSON.stringify(given[channel]) !== JSON.stringify(value);
    if (isNew && isPlain(value)) expected[`/state/${escaped(channel)}`] = value;
  }
  return expected;
}

/** Returns a part of a JSON pointer (RFC 6901). */
function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Returns true for a short value without keys that have a meaning for cases. */
function isPlain(value: unknown): boolean {
  const text = JSON.stringify(value) ?? "";
  return text.length <= EXPECTED_CHARS && !text.includes('"$');
}

/** Returns the line of a case, with a line break. */
export function caseLine(
  name: string,
  { graph, input, context }: Pick<CaseRun, "graph" | "input" | "context">,
  expect: Expectations,
): string {
  return `${JSON.stringify({ name, graph, input, context, expect })}\n`;
}

/** Returns the expectations in a text; `undefined` if there are none. */
export function readExpectations(value: unknown): Expectations | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const pointers = Object.keys(value);
  const isValid = pointers.length > 0 && pointers.every((pointer) => pointer.startsWith("/"));
  return isValid ? (value as Expectations) : undefined;
}
