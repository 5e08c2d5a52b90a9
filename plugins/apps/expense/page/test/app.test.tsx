// The page while it reads the conversation that its URL names.
import "@wattle/page/ai";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { App } from "../src/app.tsx";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  history.replaceState(null, "", "/");
});

/** Shows the page of the thread `t1`, whose requests are answered in this order. */
function show(...answers: Response[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string) => {
    const { pathname } = new URL(url);
    if (pathname === "/api/bookings") return Response.json({ error: "没有权限" }, { status: 502 });
    asked.push(pathname);
    return answers.shift();
  });
  history.replaceState(null, "", "/?thread=t1");
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
  );
  return asked;
}

test("a conversation that could not be read is read again by a button", async () => {
  const parts = [{ type: "text", text: "早上好" }];
  const messages = [{ id: "a", role: "assistant", parts }];
  const asked = show(
    Response.json({ error: "暂时不可用" }, { status: 500 }),
    Response.json({ threadId: "t1", status: "idle", messages }),
  );
  await screen.findByText("暂时不可用");
  expect(screen.queryByRole("textbox")).toBeNull();
  const alert = screen.getByText("暂时不可用").closest<HTMLElement>('[role="alert"]');
  fireEvent.click(alert?.querySelector("button") ?? document.body);
  await screen.findByText("早上好");
  expect(asked).toEqual(["/api/threads/t1", "/api/threads/t1"]);
  expect(location.search).toBe("?thread=t1");
});

test("a conversation that does not exist is replaced by a new one, which the page says", async () => {
  show(Response.json({ error: "对话不存在或已过期" }, { status: 404 }));
  await screen.findByText("对话不存在或已过期，已开始新的对话。");
  screen.getByRole("list", { name: "试一试" });
  await vi.waitFor(() => expect(location.search).toBe(""));
  fireEvent.click(screen.getByRole("button", { name: "新对话" }));
  expect(screen.queryByText("对话不存在或已过期，已开始新的对话。")).toBeNull();
});
