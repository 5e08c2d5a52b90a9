// The list of sessions, which the endpoint returns in pages.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import type { Session } from "../src/chat/types.ts";
import { History } from "../src/history/history.tsx";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const TIME = "2025-01-15T10:30:45+08:00";

function session(id: string): Session {
  return {
    session_id: id,
    title: `会话 ${id}`,
    created_at: TIME,
    updated_at: TIME,
    message_count: 2,
  };
}

const sessions = (count: number) =>
  Array.from({ length: count }, (_, index) => session(String(index + 1)));

/** Answers as the endpoint does: at most 200 sessions a request. */
function serve(all: () => readonly Session[]): void {
  vi.stubGlobal("fetch", async (url: string) => {
    const query = new URL(url).searchParams;
    const [offset, limit] = [Number(query.get("offset")), Number(query.get("limit"))];
    if (limit < 1 || limit > 200) return Response.json({ message: "limit" }, { status: 400 });
    const found = all();
    const data = { sessions: found.slice(offset, offset + limit), total: found.length };
    return Response.json({ code: 0, message: "ok", data });
  });
}

function renderList(): () => string[] {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const { container } = render(
    <QueryClientProvider client={client}>
      <History current={undefined} onOpen={() => {}} onChanged={() => {}} />
    </QueryClientProvider>,
  );
  const titles = () => [...container.querySelectorAll("[data-part='title']")];
  return () => titles().map((title) => title.textContent ?? "");
}

test("the list grows beyond the largest page of the endpoint", async () => {
  const all = sessions(201);
  serve(() => all);
  const shown = renderList();
  for (const count of [50, 100, 150, 200]) {
    await waitFor(() => expect(shown()).toHaveLength(count));
    fireEvent.click(screen.getByText("更多（共 201 个）"));
  }
  await waitFor(() => expect(shown()).toHaveLength(201));
  expect(screen.queryByText("会话 201")).not.toBeNull();
  expect(screen.queryByText(/^更多/)).toBeNull();
});

test("a session that moves to the next page between two requests is in the list once", async () => {
  const first = sessions(60);
  let all = first;
  serve(() => all);
  const shown = renderList();
  await waitFor(() => expect(shown()).toHaveLength(50));
  all = [...first.slice(59), ...first.slice(0, 59)];
  fireEvent.click(screen.getByText("更多（共 60 个）"));
  await waitFor(() => expect(shown().length).toBeGreaterThan(50));
  expect(shown()).toEqual(first.slice(0, 59).map(({ title }) => title));
});

test("a list that is not read says why", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ message: "没有权限" }, { status: 500 }));
  renderList();
  expect((await screen.findByRole("alert")).textContent).toBe("会话列表没有加载：没有权限");
  expect(screen.queryByText("还没有会话")).toBeNull();
});
