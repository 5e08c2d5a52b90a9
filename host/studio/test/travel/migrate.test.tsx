// The migration of a thread, and what is shown before it.
import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Migration } from "../../src/travel/requests.ts";
import { problem } from "../host.ts";
import { show } from "../show.tsx";
import {
  click,
  close,
  dialog,
  HOSTILE,
  type Host,
  NEW,
  OLD,
  serve,
  threadWith,
} from "./served.tsx";

let host: Host;

beforeEach(() => {
  host = serve();
});

afterEach(close);

describe("a migration", () => {
  const OPEN = "Migrate to the current code…";
  const migrate = () => dialog().getByRole<HTMLButtonElement>("button", { name: /^Migrate the/ });

  beforeEach(() => {
    host.thread = threadWith({ version: OLD });
  });

  test("is not offered to a thread with the current code", async () => {
    host.thread = threadWith({ version: NEW });
    show("/threads/t1");
    await waitFor(() => expect(host.reads.some((path) => path.endsWith("/versions"))).toBe(true));
    await screen.findByRole("button", { name: "Edit the state" });
    expect(screen.queryByRole("button", { name: OPEN })).toBeNull();
  });

  test("shows what it changes before it is confirmed", async () => {
    const changes: Migration["changes"] = [
      { kind: "channel_added", channel: "note" },
      { kind: "task_restarted", node: HOSTILE },
      { kind: "task_restarted", node: "ask", interrupts: 1 },
    ];
    host.report = ({ dry_run }) => {
      return { from: OLD, to: NEW, changes, obstacles: [], applied: dry_run !== true };
    };
    show("/threads/t1");
    await click(OPEN);
    await screen.findByText("Channel note is added with its default.");
    const restarted = screen.getByText(/\[U\+202E\]gnp starts from the beginning/);
    expect(restarted.textContent).not.toContain("interrupt");
    screen.getByText(/^Node ask starts .* Its pending interrupt is dropped until/);
    expect(host.sent.map(({ body }) => body)).toEqual([{ drop: false, set: {}, dry_run: true }]);
    fireEvent.click(migrate());
    await screen.findByText(/^The thread uses version cdcdcdcdcdcd now/);
    expect(host.sent.at(-1)?.body).toEqual({ drop: false, set: {}, dry_run: false });
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  test("has its obstacles removed, each time with a new report", async () => {
    host.report = ({ drop, set, dry_run }) => {
      const obstacles: Migration["obstacles"] = [];
      if (drop !== true) obstacles.push({ kind: "channel_gone", channel: "old" });
      if (!Object.hasOwn(set ?? {}, "count")) {
        obstacles.push({ kind: "value_invalid", channel: "count", message: "not a number" });
      }
      const applied = dry_run !== true && obstacles.length === 0;
      return { from: OLD, to: NEW, changes: [], obstacles, applied };
    };
    show("/threads/t1");
    await click(OPEN);
    await screen.findByText(/there are 2 obstacles/);
    expect(migrate().getAttribute("aria-disabled")).toBe("true");
    fireEvent.click(screen.getByLabelText(/^Drop the values/));
    const editor = await screen.findByLabelText("New value of channel count");
    fireEvent.change(editor, { target: { value: "x" } });
    await screen.findByText("A value cannot be sent.");
    fireEvent.change(editor, { target: { value: "7" } });
    expect(migrate().disabled).toBe(true);
    await click("Check again");
    await waitFor(() => expect(migrate().disabled).toBe(false));
    fireEvent.click(migrate());
    await screen.findByText(/^The thread uses version/);
    expect(host.sent.at(-1)?.body).toEqual({ drop: true, set: { count: 7 }, dry_run: false });
  });

  test("that was refused meanwhile shows the new report", async () => {
    show("/threads/t1");
    await click(OPEN);
    await waitFor(() => expect(migrate().disabled).toBe(false));
    host.report = () => {
      const obstacles: Migration["obstacles"] = [{ kind: "node_gone", node: "pay" }];
      return { from: OLD, to: NEW, changes: [], obstacles, applied: false };
    };
    fireEvent.click(migrate());
    await screen.findByText(/^Node pay runs next, and the current graph/);
    expect(migrate().disabled).toBe(true);
  });

  test("of a thread that runs is refused with the reason", async () => {
    host.refusal = problem(409, "a run is active");
    show("/threads/t1");
    await click(OPEN);
    await screen.findByText(/not in the state for it: a run is active/);
    expect(migrate().disabled).toBe(true);
  });
});
