// The language of the page, and its links.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { App } from "../src/app.tsx";

/** `undefined` for a host that cannot answer. */
let hasStudio: boolean | undefined;

beforeEach(() => {
  hasStudio = true;
  const expense = {
    title: "记账助手",
    path: "/apps/expense/",
    examples: ["午饭30元"],
    built: true,
  };
  const apps = [{ name: "expense", doc: "Expenses", version: "1.0", page: expense }];
  vi.stubGlobal("fetch", async ({ url }: Request) => {
    if (!url.endsWith("/access")) return Response.json(apps);
    if (hasStudio === undefined) return Response.json({}, { status: 503 });
    return Response.json({ studio: hasStudio });
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  localStorage.clear();
  document.documentElement.removeAttribute("lang");
});

/** Shows the page in a browser with these languages. */
function show(languages: string[]): QueryClient {
  vi.spyOn(navigator, "languages", "get").mockReturnValue(languages);
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
  );
  return client;
}

const CHINESE = {
  lang: "zh-CN",
  title: "Wattle 应用",
  count: "1 个应用可用",
  theme: "主题：跟随系统",
};
const ENGLISH = {
  lang: "en",
  title: "Wattle applications",
  count: "1 application is available",
  theme: "Theme: system",
};

/** The texts of the page and of the parts that pages share are in one language. */
async function speaks({ lang, title, count, theme }: typeof CHINESE): Promise<void> {
  await screen.findByText(count);
  screen.getByRole("heading", { name: title, level: 1 });
  await screen.findByRole("button", { name: theme });
  expect([document.documentElement.lang, document.title]).toEqual([lang, title]);
}

test.each([
  [["zh-CN", "en"], CHINESE],
  [["en-GB", "zh-CN"], ENGLISH],
  [["ja", "zh-TW", "en"], CHINESE],
  [["de-CH"], ENGLISH],
  [[], ENGLISH],
])("a browser with the languages %j gets %o", async (languages, texts) => {
  show(languages);
  await speaks(texts);
});

test("the language that a user chooses is kept", async () => {
  show(["en-US"]);
  await speaks(ENGLISH);
  fireEvent.click(screen.getByRole("radio", { name: "中文" }));
  await speaks(CHINESE);
  cleanup();
  show(["en-US"]);
  await speaks(CHINESE);
});

test("an example is the application's own, in each language", async () => {
  show(["en-US"]);
  const link = await screen.findByRole("link", { name: "午饭30元" });
  expect(link.getAttribute("title")).toBe("Open Expense assistant with this example");
  screen.getByRole("button", { name: "Copy: 午饭30元" });
});

test("a Chinese example on a page in English has its language", async () => {
  show(["en-US"]);
  const examples = ["午饭30元", "昨天买入腾讯 100 股 320", /youtube/];
  const language = (text: string | RegExp) => screen.getByText(text).getAttribute("lang");
  await screen.findByRole("link", { name: "午饭30元" });
  expect(examples.map(language)).toEqual(["zh-CN", "zh-CN", null]);
  fireEvent.click(screen.getByRole("radio", { name: "中文" }));
  await speaks(CHINESE);
  expect(examples.map(language)).toEqual([null, null, null]);
});

test("an application that is loaded links to its runs, if the host has a studio", async () => {
  show(["en-US"]);
  const [link, ...others] = await screen.findAllByRole("link", { name: "Runs in the studio" });
  expect(link?.getAttribute("href")).toBe("/studio/runs?app=expense");
  expect(others).toEqual([]);
  screen.getByRole("link", { name: "The studio shows each step of each run." });
  cleanup();
  hasStudio = false;
  const client = show(["en-US"]);
  await waitFor(() => expect(client.getQueryData(["studio"])).toBe(false));
  await speaks(ENGLISH);
  expect(screen.queryByRole("link", { name: /studio/ })).toBeNull();
});

test("a host that could not say whether it has a studio is asked again", async () => {
  hasStudio = undefined;
  const client = show(["en-US"]);
  await waitFor(() => expect(client.getQueryState(["studio"])?.status).toBe("error"));
  hasStudio = true;
  fireEvent(window, new Event("visibilitychange"));
  await screen.findByRole("link", { name: "The studio shows each step of each run." });
});
