// What a user does with the newest run of a thread.
import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { Thread } from "../../src/api/thread.ts";
import { continuationOf } from "../../src/travel/control.tsx";
import { problem } from "../host.ts";
import { show } from "../show.tsx";
import { CALL, click, close, dialog, FAILED, type Host, serve, threadWith } from "./served.tsx";

let host: Host;

beforeEach(() => {
  host = serve();
});

afterEach(close);

describe("a thread continues without answers", () => {
  test("after a failure as a retry, and after a drain or an edit as a resume", () => {
    expect(continuationOf(threadWith(FAILED))).toBe("retry");
    expect(continuationOf(threadWith({ status: "interrupted", next: ["a"] }))).toBe("resume");
    expect(continuationOf(threadWith({ status: "idle", stopped: true, next: ["a"] }))).toBe(
      "resume",
    );
  });

  test("unless it runs, has ended, waits for an answer or is set aside", () => {
    const interrupt = { id: "i1", node: "a", payload: null, asked_ms: 0 };
    const failure = { code: "internal", message: "gone" };
    const others: Partial<Thread>[] = [
      { status: "running", next: ["a"] },
      { status: "idle" },
      { status: "interrupted", next: ["a"], interrupts: [interrupt] },
      { ...FAILED, set_aside: { failure, since_ms: 0, attempts: 1 } },
    ];
    for (const values of others) expect(continuationOf(threadWith(values))).toBeUndefined();
  });
});

test("a run is cancelled once a user has confirmed it", async () => {
  host.thread = threadWith({ status: "running" });
  noteTenantHeader("x-tenant");
  show("/threads/t1?tenant=acme");
  await click("Cancel");
  fireEvent.click(dialog().getByRole("button", { name: "Do nothing" }));
  expect(host.sent).toEqual([]);
  await click("Cancel");
  const before = host.reads.filter((path) => path.endsWith("/t1/runs")).length;
  fireEvent.click(dialog().getByRole("button", { name: "Cancel the run" }));
  await screen.findByText("The run was cancelled.");
  expect(host.sent).toEqual([{ path: "/api/v1/runs/r1/cancel", tenant: "acme", body: undefined }]);
  await waitFor(() => {
    expect(host.reads.filter((path) => path.endsWith("/t1/runs")).length).toBeGreaterThan(before);
  });
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("a run is drained at once, and a refusal says why", async () => {
  host.thread = threadWith({ status: "running" });
  host.refusal = problem(409, "the run has ended");
  show("/threads/t1");
  await click("Drain");
  const alert = await screen.findByText(/not in the state for it: the run has ended/);
  expect(alert.closest('[role="alert"]')).not.toBeNull();
  host.refusal = undefined;
  await click("Drain");
  await waitFor(() => expect(screen.queryByText(/not in the state for it/)).toBeNull());
  expect(host.sent.map(({ path }) => path)).toEqual([
    "/api/v1/threads/t1/runs/r1/drain",
    "/api/v1/threads/t1/runs/r1/drain",
  ]);
});

test("a key that may only read has no actions", async () => {
  host.thread = threadWith(FAILED);
  host.calls = [CALL];
  show("/threads/t1", { scope: "read" });
  await screen.findByRole("region", { name: "Calls in doubt" });
  for (const name of ["Retry what failed", "Settle", "Edit the state"]) {
    expect(screen.queryByRole("button", { name })).toBeNull();
  }
});

test("a failed run is retried from its view, which leads to the new run", async () => {
  host.thread = threadWith(FAILED);
  const { history } = show("/threads/t1/runs/r1");
  await click("Retry what failed");
  await waitFor(() => expect(history.location.href).toBe("/threads/t1/runs/r2"));
  expect(host.sent).toEqual([{ path: "/api/v1/threads/t1/resume", tenant: null, body: {} }]);
});

test("a user who leaves while a run is being retried stays where they are", async () => {
  host.thread = threadWith(FAILED);
  let release: () => void = () => undefined;
  host.held = new Promise((resolve) => {
    release = resolve;
  });
  const { history } = show("/threads/t1/runs/r1");
  await click("Retry what failed");
  await waitFor(() => expect(host.sent.length).toBe(1));
  fireEvent.click(screen.getByRole("link", { name: "Thread t1" }));
  const lists = () => host.reads.filter((path) => path.endsWith("/t1/runs")).length;
  await waitFor(() => expect(lists()).toBeGreaterThan(0));
  const before = lists();
  release();
  // The thread is read again when the run has begun.
  await waitFor(() => expect(lists()).toBeGreaterThan(before));
  expect(history.location.href).toBe("/threads/t1");
});

test("only the newest run of a thread is retried", async () => {
  host.thread = threadWith({ ...FAILED, run: "r9" });
  show("/threads/t1/runs/r1");
  await waitFor(() => expect(host.reads).toContain("/api/v1/threads/t1"));
  await screen.findByText("failed");
  expect(screen.queryByRole("button", { name: "Retry what failed" })).toBeNull();
});

test("calls in doubt are made again only if a user confirms it", async () => {
  host.thread = threadWith(FAILED);
  host.calls = [CALL, { ...CALL, call: 1, decision: { kind: "fail" } }];
  const { history } = show("/threads/t1");
  await click("Retry what failed");
  await screen.findByText(/^One call is in doubt and not settled/);
  expect(host.sent).toEqual([]);
  fireEvent.click(dialog().getByRole("button", { name: "Make the calls again" }));
  await waitFor(() => expect(history.location.href).toBe("/threads/t1/runs/r2"));
});

test("the actions get the focus by a key", async () => {
  host.thread = threadWith(FAILED);
  show("/threads/t1");
  const retry = await screen.findByRole("button", { name: "Retry what failed" });
  fireEvent.keyDown(document.body, { key: "a" });
  expect(document.activeElement).toBe(retry);
});
