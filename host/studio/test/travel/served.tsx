// A host with one thread, for tests of what changes the thread.
import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import { vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { Thread } from "../../src/api/thread.ts";
import type { Migration, PendingCall } from "../../src/travel/requests.ts";
import { threadOf } from "../host.ts";
import { log, runEnded, runStarted } from "../run/log.ts";

export const HOSTILE = "<img src=x onerror=alert(1)> \u202egnp";

/** The former and the current version of the graph. */
export const OLD = "ab".repeat(32);
export const NEW = "cd".repeat(32);

/** A request that changes something. */
export interface Sent {
  path: string;
  tenant: string | null;
  body: unknown;
}

interface Options {
  drop?: boolean;
  set?: object;
  dry_run?: boolean;
}

/** What the host responds with, and what it was asked. */
export interface Host {
  thread: Thread;
  calls: PendingCall[];
  report: (options: Options) => Migration;
  /** What it responds to each change, in place of making it. */
  refusal: Response | undefined;
  /** What it waits for before it makes a change. */
  held: Promise<void> | undefined;
  readonly sent: Sent[];
  readonly reads: string[];
}

/** Returns a thread whose newest run is `r1`. */
export function threadWith(values: Partial<Thread>): Thread {
  const rest = { version: NEW, state: {}, next: [], interrupts: [] };
  return { ...threadOf("t1", 1, { run: "r1" }), ...rest, ...values };
}

export const FAILED: Partial<Thread> = { status: "error", next: ["pay"] };

export const CALL: PendingCall = {
  run: "r1",
  seq: 4,
  task: "t1",
  node: "pay",
  scope: [],
  call: 0,
  function: "http.send",
  summary: HOSTILE,
  at_ms: 5,
};

/** Starts the host of a test. */
export function serve(): Host {
  const host: Host = {
    thread: threadWith({}),
    calls: [],
    report: () => ({ from: OLD, to: NEW, changes: [], obstacles: [], applied: false }),
    refusal: undefined,
    held: undefined,
    sent: [],
    reads: [],
  };
  vi.stubGlobal("fetch", (request: Request) => answer(host, request));
  return host;
}

/** Ends the host and what is shown of it. */
export function close(): void {
  cleanup();
  vi.unstubAllGlobals();
  noteTenantHeader(null);
}

async function answer(host: Host, request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const [, , , kind, , what] = pathname.split("/");
  if (request.method === "POST") return change(host, request, pathname);
  host.reads.push(pathname);
  if (kind === "apps") return Response.json([{ version: NEW, is_loaded: true, is_current: true }]);
  if (kind === "runs") return Response.json({ run: "r1", thread: "t1", status: "failed" });
  switch (what) {
    case "open-calls":
      return Response.json(host.calls);
    case "runs":
    case "history":
      return Response.json([]);
    case "log": {
      const items = log(runStarted(), runEnded("failed", { failure: { code: "x", message: "y" } }));
      return Response.json({ items, last_seq: items.length });
    }
    default:
      return Response.json(host.thread);
  }
}

async function change(host: Host, request: Request, path: string): Promise<Response> {
  const text = await request.text();
  const body = text === "" ? undefined : JSON.parse(text);
  host.sent.push({ path, tenant: request.headers.get("x-tenant"), body });
  await host.held;
  if (host.refusal !== undefined) return host.refusal;
  if (path.endsWith("/migrate")) return Response.json(host.report(body));
  if (path.endsWith("/settle")) return new Response(null, { status: 204 });
  return Response.json({ run: "r2", thread: "t1", status: "running" }, { status: 202 });
}

export const click = async (name: string) =>
  fireEvent.click(await screen.findByRole("button", { name }));

export const dialog = () => within(screen.getByRole("dialog"));
