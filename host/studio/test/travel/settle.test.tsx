// The decisions about calls in doubt.
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { problem } from "../host.ts";
import { show } from "../show.tsx";
import { CALL, click, close, FAILED, HOSTILE, type Host, serve, threadWith } from "./served.tsx";

let host: Host;

beforeEach(() => {
  host = serve();
});

afterEach(close);

test("calls in doubt are shown with their requests, and lead to the timeline", async () => {
  host.thread = threadWith(FAILED);
  const request = { tool: "pay", arguments: HOSTILE };
  host.calls = [
    { ...CALL, request },
    { ...CALL, run: "r0", call: 1 },
  ];
  show("/threads/t1");
  const [first, second] = await screen.findAllByRole("link", { name: "Event 4" });
  expect(first?.getAttribute("href")).toBe("/threads/t1/runs/r1?at=4");
  expect(second?.getAttribute("href")).toBe("/threads/t1/runs/r0?at=4");
  const shown = screen.getAllByRole("group", { name: "Request" });
  expect(shown.map(({ textContent }) => textContent)).toEqual([expect.stringContaining("pay")]);
  expect(document.querySelector("img")).toBeNull();
});

test("a run that has failed lists the calls in doubt that it started", async () => {
  host.thread = threadWith(FAILED);
  host.calls = [CALL, { ...CALL, run: "r0", call: 1 }];
  show("/threads/t1/runs/r1");
  const calls = await screen.findByRole("list", { name: "Calls in doubt" });
  expect(within(calls).getAllByRole("listitem").length).toBe(1);
  await click("Settle");
  fireEvent.click(screen.getByRole("radio", { name: "It failed" }));
  await click("Settle the call");
  await waitFor(() =>
    expect(host.sent.map(({ path }) => path)).toEqual(["/api/v1/threads/t1/settle"]),
  );
});

describe("a call in doubt", () => {
  const settled = () => host.sent.map(({ body }) => body);

  beforeEach(() => {
    host.thread = threadWith(FAILED);
    host.calls = [{ ...CALL, scope: [2], call: 3 }];
    show("/threads/t1");
  });

  test("gets its result", async () => {
    await click("Settle");
    const editor = screen.getByLabelText<HTMLTextAreaElement>("Result of the call");
    expect(JSON.parse(editor.value)).toMatchObject({ status: 200 });
    fireEvent.change(editor, { target: { value: "{" } });
    await click("Settle the call");
    expect(settled()).toEqual([]);
    fireEvent.change(editor, { target: { value: '{"status":201}' } });
    host.calls = [{ ...CALL, scope: [2], call: 3, decision: { kind: "answer", answer: 1 } }];
    await click("Settle the call");
    await screen.findByText("Settled: it returned the given result");
    const decision = { kind: "answer", answer: { status: 201 } };
    expect(settled()).toEqual([{ task: "t1", scope: [2], call: 3, seq: CALL.seq, decision }]);
    expect(screen.getByRole("button", { name: "Settle differently" })).toBeDefined();
  });

  test("fails, or is made again", async () => {
    for (const [name, kind] of [
      ["It failed", "fail"],
      ["Make it again", "retry"],
    ] as const) {
      await click("Settle");
      fireEvent.click(screen.getByRole("radio", { name }));
      await click("Settle the call");
      await waitFor(() => expect(screen.queryByRole("form", { name: "Decision" })).toBeNull());
      expect(settled().at(-1)).toMatchObject({ decision: { kind } });
    }
  });

  test("is shown as text, and its refusal with the reason", async () => {
    await click("Settle");
    host.refusal = problem(409, `call 3 is not in doubt ${HOSTILE}`);
    await click("Settle the call");
    await screen.findByText(/call 3 is not in doubt .*\[U\+202E\]gnp/);
    expect(document.querySelector("img")).toBeNull();
  });
});
