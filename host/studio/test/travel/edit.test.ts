// What an edit of the state consists of.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { authorOf, channelsFor, editOf, entryOf, readGraphOf } from "../../src/travel/edit.ts";
import { checkpointOf, GRAPHS, graphResponse, VERSION } from "./notes.ts";

beforeEach(() => {
  vi.stubGlobal("fetch", async ({ url }: Request) => {
    const at = new URL(url);
    return graphResponse(at, at.pathname.split("/").at(-1) ?? "");
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("the channels of an edit", () => {
  const [count, notes, free, talk, mixed] = channelsFor(GRAPHS.main, { count: 1, notes: ["a"] });

  test("are those of the graph, with their values", () => {
    expect(count).toMatchObject({ name: "count", value: 1, reducer: undefined });
    expect(notes).toMatchObject({ reducer: "append", value: ["a"] });
    expect([free?.value, talk?.reducer, mixed?.reducer]).toEqual([undefined, "messages", "p/mix"]);
  });

  test("are those with a value if the host does not have the graph", () => {
    const channels = channelsFor(undefined, { a: 1 });
    expect(channels).toMatchObject([{ name: "a", value: 1, schema: undefined }]);
    expect(channelsFor(undefined, null)).toEqual([]);
  });

  test("have a form of their schema, unless a reducer takes parts of a value", () => {
    const kinds = [count, notes, free, talk, mixed].map((it) => {
      if (it === undefined) throw new Error("the graph has the channel");
      return [entryOf(it).field.kind, entryOf(it, "combine").field.kind];
    });
    expect(kinds).toEqual([
      ["number", "json"],
      ["list", "list"],
      ["json", "json"],
      ["list", "json"],
      ["json", "json"],
    ]);
  });

  test("leave out a value that is too long to be edited", () => {
    const long = { name: "x", doc: "", reducer: undefined, schema: {}, value: "x".repeat(300_000) };
    expect(entryOf(long)).toMatchObject({ isTooLong: true, draft: { kind: "none" } });
  });
});

test("an edit names the node that made the checkpoint, if there is one", () => {
  expect(authorOf(checkpointOf(1))).toBe("write");
  expect(authorOf(checkpointOf(1, { writers: ["a", "b"] }))).toBe("");
  expect(authorOf(checkpointOf(1, { writers: [], source: "input" }))).toBe("__input__");
  expect(authorOf(checkpointOf(1, { writers: [] }))).toBe("");
});

test("the end of the graph writes nothing", () => {
  const [count] = channelsFor(GRAPHS.main, { count: 1 });
  if (count === undefined) throw new Error("the graph has the channel");
  const { edit } = editOf("END", new Map([["count", entryOf(count)]]));
  expect(edit).toEqual({ as_node: "END", values: {}, overwrite: [] });
});

describe("the graph of a checkpoint", () => {
  const thread = { app: "notes", graph: "main", version: "cd".repeat(32) };

  test("is that of its version, also within a node", async () => {
    expect((await readGraphOf(thread, checkpointOf(1)))?.name).toBe("main");
    const here = { ...thread, version: VERSION };
    const nested = checkpointOf(1, { namespace: "inner:t7" });
    expect((await readGraphOf(here, nested))?.name).toBe("inner");
    const other = checkpointOf(1, { namespace: "inner:t7", version: "ef".repeat(32) });
    expect((await readGraphOf(here, other))?.name).toBe("inner");
  });

  test("is unknown for a graph that a node has started, and for code that is gone", async () => {
    const here = { ...thread, version: VERSION };
    expect(await readGraphOf(here, checkpointOf(1, { namespace: "write:t7" }))).toBeNull();
    expect(await readGraphOf(here, checkpointOf(1, { namespace: "toString:t7" }))).toBeNull();
    expect(await readGraphOf(thread, checkpointOf(1, { version: "00".repeat(32) }))).toBeNull();
  });
});
