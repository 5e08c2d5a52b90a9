// The list of sessions, which the endpoint returns in pages.
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { listSessions } from "../src/chat/api.ts";
import { useSessions } from "../src/chat/sessions.ts";
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

function List() {
  const list = useSessions();
  const [onOpen, onChanged, onCleared] = [vi.fn(), vi.fn(), vi.fn()];
  return <History sessions={list} current={undefined} {...{ onOpen, onChanged, onCleared }} />;
}

test("the list grows beyond the largest page of the endpoint", async () => {
  const all = sessions(201);
  serve(() => all);
  const { container } = render(<List />);
  const shown = () => container.querySelectorAll("li").length;
  for (const count of [50, 100, 150, 200]) {
    await waitFor(() => expect(shown()).toBe(count));
    fireEvent.click(screen.getByText("更多（共 201 个）"));
  }
  await waitFor(() => expect(shown()).toBe(201));
  expect(screen.queryByText("会话 201")).not.toBeNull();
  expect(screen.queryByText(/^更多/)).toBeNull();
});

test("a session that moves to the top between two requests is in the list once", async () => {
  const first = sessions(201);
  const moved = [...first.slice(200), ...first.slice(0, 200)];
  let requests = 0;
  serve(() => {
    requests += 1;
    return requests === 1 ? first : moved;
  });
  const { sessions: listed } = await listSessions(250);
  expect(requests).toBe(2);
  expect(listed).toEqual(first.slice(0, 200));
});
