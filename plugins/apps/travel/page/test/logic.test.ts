// Logic of the page, without a screen.
import { textOf } from "@wattle/page/ai";
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import type { Block } from "../src/api.ts";
import { blockOf, blocksOf, draftOf, moved, newDraft, problemsOf } from "../src/blocks.ts";
import { isFirstVisit } from "../src/initial.ts";
import { editable, firstOf, pageCall } from "../src/parts.ts";
import { bounded, widthAfter } from "../src/resize.tsx";
import { routeOf } from "../src/route.ts";
import { summaryOf, withoutLongTexts } from "../src/tools.ts";
import * as unsaved from "../src/unsaved.ts";

test("the route is found below any prefix", () => {
  const base = "http://host/apps/travel/";
  expect(routeOf("http://host/apps/travel/", base)).toEqual({ at: "home" });
  const href = "http://host/apps/travel/session/a%20b?initial=%E4%B8%9C%E4%BA%AC";
  expect(routeOf(href, base)).toEqual({ at: "session", id: "a b", initial: "东京" });
  const bare = routeOf("http://host/session/7", "http://host/");
  expect(bare).toEqual({ at: "session", id: "7", initial: undefined });
});

test("s3_03 the first message is sent once, and is removed from the URL", () => {
  history.replaceState(null, "", "/session/s1?initial=hello");
  expect(isFirstVisit("s1", "hello")).toBe(true);
  expect(location.search).toBe("");
  expect(isFirstVisit("s1", "hello")).toBe(false);
});

test("s3_63 the panel has 300 to 600 pixels, also by keyboard", () => {
  expect([bounded(10), bounded(450.4), bounded(9_000)]).toEqual([300, 450, 600]);
  expect(widthAfter("ArrowLeft", 420)).toBe(436);
  expect(widthAfter("ArrowRight", 305)).toBe(300);
  expect([widthAfter("Home", 420), widthAfter("End", 420)]).toEqual([300, 600]);
  expect(widthAfter("a", 420)).toBeUndefined();
});

const BLOCK: Block = {
  block_id: "b1",
  type: "spot",
  title: "Temple",
  description: "Old",
  location: { lat: 35.7, lng: 139.8 },
  smart_tags: ["a", "b"],
};

test("a block is not changed by the editor", () => {
  expect(blockOf(draftOf(BLOCK))).toEqual(BLOCK);
  expect(blockOf(draftOf({ ...BLOCK, location: null, smart_tags: [] }))).toEqual({
    ...BLOCK,
    location: null,
    smart_tags: [],
  });
});

test("s3_52 unsaved edits outlive the page until they are saved", () => {
  expect(unsaved.read("s")).toBeUndefined();
  unsaved.keep("s", [BLOCK]);
  expect(unsaved.read("s")).toEqual([BLOCK]);
  unsaved.drop("s", []);
  expect(unsaved.read("s")).toEqual([BLOCK]);
  unsaved.drop("s", [BLOCK]);
  expect(unsaved.read("s")).toBeUndefined();
  sessionStorage.setItem("wattle-travel-edit-s", "{");
  expect(unsaved.read("s")).toBeUndefined();
});

test("drafts with problems are not saved", () => {
  const draft = draftOf(BLOCK);
  expect(problemsOf(draft)).toEqual({});
  expect(Object.keys(problemsOf({ ...draft, title: " ", lat: "91", lng: "" }))).toEqual([
    "title",
    "lat",
    "lng",
  ]);
  expect(blocksOf([draft, newDraft()])).toBeUndefined();
  expect(newDraft().block_id).not.toBe(newDraft().block_id);
  expect(blockOf({ ...draft, tags: "x， y,x、" }).smart_tags).toEqual(["x", "y"]);
});

test("blocks are moved within the list", () => {
  expect(moved([1, 2, 3], 0, 1)).toEqual([2, 1, 3]);
  expect(moved([1, 2, 3], 2, 3)).toEqual([1, 2, 3]);
});

function tool(name: string, toolCallId: string, output: unknown): UIMessage["parts"][number] {
  const part = { type: `tool-${name}`, toolCallId, state: "output-available", input: {}, output };
  return part as UIMessage["parts"][number];
}

test("s3_59 only the output of the coordinates can be edited", () => {
  const said: UIMessage[] = [
    { id: "u", role: "user", parts: [{ type: "text", text: "hello" }] },
    { id: "a", role: "assistant", parts: [tool("build_travel_blocks", "c1", { blocks: [BLOCK] })] },
  ];
  expect(editable(said)).toBeUndefined();
  said.push({
    id: "b",
    role: "assistant",
    parts: [
      tool("resolve_spot_coordinates", "c2", { blocks: [BLOCK] }),
      tool("generate_handbook_html", "c3", { html: "<!doctype html>" }),
    ],
  });
  expect(editable(said)).toEqual({ call: "c2", blocks: [BLOCK], done: 2 });
  expect(pageCall(said)).toBe("c3");
  expect(firstOf(said) && textOf(firstOf(said) as UIMessage)).toBe("hello");
});

test("cards summarize the output of a tool, and show no page as JSON", () => {
  expect(summaryOf("resolve_spot_coordinates", { resolved_count: 2, unresolved_count: 1 })).toBe(
    "已定位 2 个景点，未找到 1 个",
  );
  expect(summaryOf("search_image", undefined)).toBeUndefined();
  expect(summaryOf("unknown", {})).toBeUndefined();
  expect(withoutLongTexts({ html: "x".repeat(5_000), title: "T" })).toEqual({
    html: "（5,000 字符）",
    title: "T",
  });
});
