// The names of host calls in the log: interface and function. `CallKind` in
// `host/graph/src/call.rs` defines them.

/** The host calls that the studio treats specially. */
export const CALLS = {
  complete: "llm.complete",
  stream: "llm.stream",
  generateImages: "llm.generate-images",
  callTool: "tools.call",
  sendHttp: "http.send",
  querySql: "sql.query",
} as const;

/** The calls that return another value in each run. */
const VOLATILE_CALLS = new Set(["clock.now", "clock.monotonic", "random.bytes"]);

/** Returns true for a function that reads a clock or returns random bytes. */
export function isVolatileCall(name: string): boolean {
  return VOLATILE_CALLS.has(name);
}

/** Returns true for a function that converts times, which are usually those of the run. */
export function isTimeConversion(name: string): boolean {
  return name === "clock.to-zone" || name === "clock.from-zone";
}

const MODEL_CALLS = new Set<string>([CALLS.complete, CALLS.stream, CALLS.generateImages]);

/** Returns true for a function that requests a completion from a model. */
export function isCompletion(name: string): boolean {
  return name === CALLS.complete || name === CALLS.stream;
}

/** Returns true for a function that requests a completion or images from a model. */
export function isModelCall(name: string): boolean {
  return MODEL_CALLS.has(name);
}
