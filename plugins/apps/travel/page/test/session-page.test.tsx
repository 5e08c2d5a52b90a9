// A session that cannot be read.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { SessionPage } from "../src/session-page.tsx";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

test.each([
  [404, "没有这个手册，它可能已被删除。"],
  [500, "数据库不可用"],
])("an error %i of a session is shown with a way back", async (status, text) => {
  vi.stubGlobal("fetch", async () => Response.json({ error: "数据库不可用" }, { status }));
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <SessionPage id="s1" initial={undefined} />
    </QueryClientProvider>,
  );
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain(text);
  screen.getByRole("button", { name: "返回首页" });
});
