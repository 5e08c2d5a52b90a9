// The start, where a video and wishes become the first message.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Home } from "../src/home.tsx";

beforeEach(() => history.replaceState(null, "", "/"));

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const SESSION = { id: "s1", title: "东京", status: "COMPLETED", finalTime: "2026-01-02T00:00:00Z" };

function start(video: string, wishes: string): void {
  vi.stubGlobal("fetch", async (_url: string, { method }: RequestInit) =>
    Response.json(method === "POST" ? SESSION : { sessions: [SESSION] }),
  );
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Home />
    </QueryClientProvider>,
  );
  fireEvent.change(screen.getByLabelText("视频链接"), { target: { value: video } });
  fireEvent.change(screen.getByLabelText("旅行要求（可选）"), { target: { value: wishes } });
  fireEvent.click(screen.getByRole("button", { name: "开始生成" }));
}

const initial = () => new URLSearchParams(location.search).get("initial");

test.each([
  [" youtu.be/dQw4w9WgXcQ?si=x ", "", "youtu.be/dQw4w9WgXcQ?si=x"],
  ["https://youtu.be/dQw4w9WgXcQ", "带孩子", "https://youtu.be/dQw4w9WgXcQ\n\n带孩子"],
  ["", "三天两晚", "三天两晚"],
])("s3_01 video %j and wishes %j are sent as they were typed", async (video, wishes, message) => {
  start(video, wishes);
  await waitFor(() => expect(initial()).toBe(message));
  expect(location.pathname).toBe("/session/s1");
});

test("a start without a video and wishes sends nothing", async () => {
  start(" ", "");
  await screen.findByRole("alert");
  expect(initial()).toBeNull();
});

test("s3_68 the list shows the final time of the server", async () => {
  start("", "");
  const row = (await screen.findByRole("link", { name: "东京" })).closest("li");
  expect(row?.querySelector("time")?.getAttribute("datetime")).toBe(SESSION.finalTime);
  expect(row?.textContent).toContain("已完成");
});
