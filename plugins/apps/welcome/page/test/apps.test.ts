// Which applications are shown, and where they lead.
import { expect, test } from "vitest";
import { type LoadedApp, ownPath, shownApps, tryAddress } from "../src/apps.ts";

const FIVE = ["asset", "reasoning", "expense", "travel", "nl2sql"];

function app(name: string, page?: Partial<NonNullable<LoadedApp["page"]>>): LoadedApp {
  const whole = { title: "", path: `/apps/${name}/`, examples: [], built: true, ...page };
  return { name, doc: `what ${name} does`, version: "1.0", page: page ? whole : null };
}

test("without an answer the known five are there, in an unknown state", () => {
  const apps = shownApps(undefined);
  expect(apps.map(({ name }) => name)).toEqual(FIVE);
  expect(new Set(apps.map(({ status }) => status))).toEqual(new Set(["unknown"]));
  expect(apps.every(({ examples, path }) => examples.length > 0 && path === undefined)).toBe(true);
});

test("a loaded app leads to its page, with its own examples", () => {
  const loaded = [app("expense", { examples: ["午饭30元"] }), app("asset", {}), app("travel")];
  const byName = Object.fromEntries(shownApps(loaded).map((app) => [app.name, app]));
  expect(byName.expense).toMatchObject({
    status: "ready",
    path: "/apps/expense/",
    examples: ["午饭30元"],
    version: "1.0",
  });
  expect(byName.asset?.examples.length).toBeGreaterThan(0);
  expect(byName.travel?.status).toBe("bare");
  expect(byName.nl2sql?.status).toBe("missing");
  const [unbuilt] = shownApps([app("asset", { built: false })]);
  expect(unbuilt).toMatchObject({ status: "unbuilt", path: undefined });
});

test("a sixth app with a page is there too, this page and apps without one are not", () => {
  const loaded = [app("welcome", {}), app("notes", { title: "Notes" }), app("bare")];
  const names = shownApps(loaded).map(({ name }) => name);
  expect(names).toEqual([...FIVE, "notes"]);
  expect(shownApps(loaded).at(-1)).toMatchObject({ title: "Notes", about: "what notes does" });
});

test("links lead nowhere but to this server", () => {
  for (const path of [
    "javascript:alert(1)",
    "//evil.test/",
    "/\\evil.test",
    "https://a.test",
    "",
  ]) {
    expect(ownPath(path)).toBeUndefined();
  }
  expect(tryAddress("/apps/a/", "昨天 & 今天")).toBe(
    `/apps/a/?initial=${encodeURIComponent("昨天 & 今天")}`,
  );
});
