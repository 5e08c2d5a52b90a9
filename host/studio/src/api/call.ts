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

const MODEL_CALLS = new Set<string>([CALLS.complete, CALLS.stream, CALLS.generateImages]);

/** Returns true for a function that requests a completion or images from a model. */
export function isModelCall(name: string): boolean {
  return MODEL_CALLS.has(name);
}
