// Which applications are shown, and where they lead.
import { expect, test } from "vitest";
import { type LoadedApp, ownPath, shownApps, tryAddress } from "../src/apps.ts";
import { TEXTS } from "../src/texts.ts";

const FIVE = ["asset", "reasoning", "expense", "travel", "nl2sql"];

function app(name: string, page?: Partial<NonNullable<LoadedApp["page"]>>): LoadedApp {
  const whole = { title: "", path: `/apps/${name}/`, examples: [], built: true, ...page };
  return { name, doc: `what ${name} does`, version: "1.0", page: page ? whole : null };
}

const shown = (loaded: readonly LoadedApp[] | undefined) => shownApps(loaded, TEXTS.zh);

test("without an answer the known five are there, in an unknown state", () => {
  const apps = shown(undefined);
  expect(apps.map(({ name }) => name)).toEqual(FIVE);
  expect(new Set(apps.map(({ status }) => status))).toEqual(new Set(["unknown"]));
  expect(apps.every(({ examples, path }) => examples.length > 0 && path === undefined)).toBe(true);
});

test("a loaded app leads to its page, with its own examples", () => {
  const loaded = [app("expense", { examples: ["午饭30元"] }), app("asset", {}), app("travel")];
  const byName = Object.fromEntries(shown(loaded).map((app) => [app.name, app]));
  expect(byName.expense).toMatchObject({
    status: "ready",
    path: "/apps/expense/",
    examples: ["午饭30元"],
    version: "1.0",
  });
  expect(byName.asset?.examples.length).toBeGreaterThan(0);
  expect(byName.travel?.status).toBe("bare");
  expect(byName.nl2sql?.status).toBe("missing");
  const [unbuilt] = shown([app("asset", { built: false })]);
  expect(unbuilt).toMatchObject({ status: "unbuilt", path: undefined });
});

test("the known five are described in each language, and others as their authors do", () => {
  const loaded = [app("expense", { title: "Bills" }), app("notes", { title: "Notes" })];
  const titles = [TEXTS.zh, TEXTS.en].map((texts) => {
    const byName = new Map(shownApps(loaded, texts).map(({ name, title }) => [name, title]));
    return [byName.get("expense"), byName.get("notes")];
  });
  expect(titles).toEqual([
    ["记账助手", "Notes"],
    ["Expense assistant", "Notes"],
  ]);
});

test("a sixth app with a page is there too, this page and apps without one are not", () => {
  const loaded = [app("welcome", {}), app("notes", { title: "Notes" }), app("bare")];
  const names = shown(loaded).map(({ name }) => name);
  expect(names).toEqual([...FIVE, "notes"]);
  expect(shown(loaded).at(-1)).toMatchObject({ title: "Notes", about: "what notes does" });
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
