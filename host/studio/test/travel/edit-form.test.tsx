// The form of an edit, as a user sees it.
import { cleanup, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { noteTenantHeader } from "../../src/access/key.ts";
import type { Checkpoint } from "../../src/state/read.ts";
import { problem, threadOf } from "../host.ts";
import { show } from "../show.tsx";
import { checkpointOf, graphResponse, HOSTILE, VERSION } from "./notes.ts";

let newest: Checkpoint;
let sent: { path: string; tenant: string | null; body: unknown }[];
let asked: URL[];
let refusal: Response | undefined;

beforeEach(() => {
  [newest, sent, asked, refusal] = [checkpointOf(3), [], [], undefined];
  vi.stubGlobal("fetch", answer);
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  noteTenantHeader(null);
});

async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const [, , , kind, , what, id = ""] = url.pathname.split("/");
  if (request.method === "POST") {
    const tenant = request.headers.get("x-tenant");
    sent.push({ path: url.pathname, tenant, body: await request.json() });
    return refusal ?? Response.json(checkpointOf(9, { source: "update" }));
  }
  asked.push(url);
  if (kind === "apps" && what === "graphs") return graphResponse(url, id);
  switch (what) {
    case "checkpoints":
      return Response.json(id === "latest" ? newest : checkpointOf(Number(id)));
    case "runs":
    case "history":
    case "open-calls":
      return Response.json([]);
    default:
      return Response.json({
        ...threadOf("t1", 1, { status: "interrupted" }),
        version: VERSION,
        state: newest.state,
        next: ["review"],
        interrupts: [],
      });
  }
}

const click = async (name: string) => fireEvent.click(await screen.findByRole("button", { name }));

const form = () => screen.findByRole("form", { name: "Edit of the state" });

const author = async () => within(await form()).getByLabelText<HTMLSelectElement>("Write as");

const channel = async (name: string) => within(await form()).getByRole("checkbox", { name });

async function confirm(): Promise<void> {
  await click("Review the edit");
  await click("Write the edit");
}

const edited = () => sent.map(({ body }) => body);

test("a value is checked by its schema, reviewed and written", async () => {
  noteTenantHeader("x-tenant");
  const { history } = show("/threads/t1/checkpoints/3?tenant=acme");
  await click("Edit the state");
  expect((await author()).value).toBe("write");
  await click("Review the edit");
  await screen.findByText("Choose at least one channel.");
  fireEvent.click(await channel("count"));
  const field = screen.getByLabelText<HTMLInputElement>("count", { selector: "input[inputmode]" });
  expect(field.value).toBe("1");
  fireEvent.change(field, { target: { value: "-2" } });
  await click("Review the edit");
  await screen.findByText("Some values do not fit their channels.");
  await waitFor(() => expect(document.activeElement).toBe(field));
  expect(sent).toEqual([]);
  fireEvent.change(field, { target: { value: "5" } });
  await click("Review the edit");
  const dialog = within(await screen.findByRole("dialog"));
  dialog.getByText(/follows checkpoint 3, written as write/);
  expect(dialog.queryByText(/is not the newest one/)).toBeNull();
  fireEvent.click(dialog.getByRole("button", { name: "Write the edit" }));
  await waitFor(() => expect(history.location.href).toBe("/threads/t1/checkpoints/9?tenant=acme"));
  const edit = { as_node: "write", values: { count: 5 }, overwrite: ["count"] };
  const body = { checkpoint: 3, supersteps: [[edit]] };
  expect(sent).toEqual([{ path: "/api/v1/threads/t1/edits", tenant: "acme", body }]);
  expect(document.querySelector("img")).toBeNull();
});

test("values are combined by the reducer, or given as JSON", async () => {
  show("/threads/t1");
  await click("Edit the state");
  fireEvent.change(await author(), { target: { value: "__input__" } });
  fireEvent.click(await channel("notes"));
  fireEvent.click(screen.getByRole("radio", { name: "Combine with it (append)" }));
  await click("Add an item");
  fireEvent.change(screen.getByLabelText("Item 1"), { target: { value: "b" } });
  fireEvent.click(await channel("free"));
  fireEvent.change(screen.getByLabelText(/free \(JSON\)/), { target: { value: '{"a":1}' } });
  await confirm();
  await waitFor(() => expect(sent.length).toBe(1));
  const values = { notes: ["b"], free: { a: 1 } };
  expect(edited()).toEqual([
    { checkpoint: 3, supersteps: [[{ as_node: "__input__", values, overwrite: ["free"] }]] },
  ]);
  await waitFor(() => expect(screen.queryByRole("form", { name: "Edit of the state" })).toBeNull());
});

test("a checkpoint that is not the newest one is edited after a warning", async () => {
  newest = checkpointOf(7);
  show("/threads/t1/checkpoints/3?ns=inner%3At7");
  await click("Edit the state");
  fireEvent.click(await channel("count"));
  await click("Review the edit");
  await screen.findByText(/Checkpoint 3 is not the newest one.*until checkpoint 7/);
  await click("Write the edit");
  await waitFor(() => expect(sent.length).toBe(1));
  expect(edited()[0]).toMatchObject({ namespace: "inner:t7", checkpoint: 3 });
});

test("the host's refusal says why, and marks the channel", async () => {
  show("/threads/t1/checkpoints/3");
  await click("Edit the state");
  fireEvent.click(await channel("count"));
  refusal = problem(400, `channel count does not accept ${HOSTILE}`, { channel: "count" });
  await confirm();
  await screen.findByText(/The host refused this: channel count .*\[U\+202E\]gnp/);
  await click("Do nothing");
  const part = (await form()).querySelector('[data-edited="count"]');
  expect(part?.getAttribute("data-refused")).toBe("true");
  refusal = problem(409, "a run is active");
  await confirm();
  await screen.findByText(/not in the state for it: a run is active/);
});

test("the form opens by a key, and is sent by one", async () => {
  show("/threads/t1/checkpoints/3");
  await screen.findByRole("button", { name: "Edit the state" });
  fireEvent.keyDown(document.body, { key: "e" });
  await waitFor(async () => expect(document.activeElement).toBe(await author()));
  fireEvent.click(await channel("count"));
  fireEvent.keyDown(await form(), { key: "Enter", ctrlKey: true });
  await click("Write the edit");
  await waitFor(() => expect(sent.length).toBe(1));
});
