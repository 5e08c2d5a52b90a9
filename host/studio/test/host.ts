// Documents and responses of a host, for tests.
import type { Access } from "../src/access/scope.ts";
import type { Thread } from "../src/threads/read.ts";

/** Returns the access of a key with all rights, with other values where a test needs them. */
export function accessOf(values: Partial<Access>): Access {
  return {
    needs_key: true,
    scope: "admin",
    is_operator: false,
    version: "0.1.0",
    instance: "i1",
    time_zone: "UTC",
    agent_server: true,
    apps: true,
    studio: true,
    install: false,
    ...values,
  };
}

/** Returns a response with a problem document. */
export function problem(status: number, detail: string, details?: unknown): Response {
  const body = { title: "Problem", status, detail, code: "unauthorized", details };
  const headers = { "content-type": "application/problem+json" };
  return new Response(JSON.stringify(body), { status, headers });
}

/** Returns a thread that was updated at this time. */
export function threadOf(id: string, updated_ms: number, values: Partial<Thread> = {}): Thread {
  return {
    thread: id,
    thread_id: id,
    app: "notes",
    graph: "main",
    status: "idle",
    created_ms: 0,
    updated_ms,
    metadata: {},
    ...values,
  };
}
