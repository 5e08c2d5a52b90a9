// The parts of a page, as users see them.
import { act, cleanup, fireEvent, render, renderHook, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Alert } from "../src/alert/alert.tsx";
import { Composer } from "../src/chat/composer.tsx";
import { isAccepted, useFiles } from "../src/chat/files.tsx";
import { toolState } from "../src/chat/tool-card.tsx";
import { lost, reached, useConnection } from "../src/connection/connection.tsx";
import { Button } from "../src/control/button.tsx";
import { useChange } from "../src/hook/change.ts";
import { useOnce } from "../src/hook/once.ts";
import { useTabs } from "../src/hook/tabs.ts";
import { Markdown } from "../src/markdown/markdown.tsx";
import { barRange } from "../src/plot/range.ts";
import { Sql } from "../src/sql/sql.tsx";
import { nextSorting, sorted } from "../src/table/sort.ts";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function composer(onSend: (text: string) => unknown) {
  render(<Composer label="消息" onSend={onSend} />);
  const field = screen.getByRole<HTMLTextAreaElement>("textbox", { name: "消息" });
  return { field, write: (value: string) => fireEvent.change(field, { target: { value } }) };
}

test("Enter sends, except with Shift or while an input method composes", () => {
  const sent: string[] = [];
  const { field, write } = composer((text) => sent.push(text));
  fireEvent.keyDown(field, { key: "Enter" });
  write(" 东京 ");
  fireEvent.keyDown(field, { key: "Enter", shiftKey: true });
  fireEvent.keyDown(field, { key: "Enter", isComposing: true });
  fireEvent.keyDown(field, { key: "Enter", keyCode: 229 });
  expect(sent).toEqual([]);
  fireEvent.keyDown(field, { key: "Enter" });
  fireEvent.keyDown(field, { key: "Enter" });
  expect(sent).toEqual(["东京"]);
  expect(field.value).toBe("");
});

test("a text that was not sent returns to its field", async () => {
  const { field, write } = composer(() => Promise.reject(new Error("away")));
  write("东京");
  await act(async () => fireEvent.keyDown(field, { key: "Enter" }));
  expect(field.value).toBe("东京");
});

test("a double-click on send does not stop the answer", () => {
  const stop = vi.fn();
  render(<Composer label="消息" onSend={() => {}} busy onStop={stop} />);
  const button = screen.getByRole("button");
  fireEvent.click(button, { detail: 2 });
  expect(stop).not.toHaveBeenCalled();
  // A click without a pointer has no count.
  for (const detail of [0, 1]) fireEvent.click(button, { detail });
  expect(stop).toHaveBeenCalledTimes(2);
});

test("an alert is read at once and has the actions that help", () => {
  const retry = vi.fn();
  render(<Alert actions={<Button onClick={retry}>重试</Button>}>没有保存</Alert>);
  const alert = screen.getByRole("alert");
  expect([alert.dataset.kind, alert.textContent]).toEqual(["error", "没有保存重试"]);
  fireEvent.click(screen.getByRole("button", { name: "重试" }));
  expect(retry).toHaveBeenCalledTimes(1);
});

test("a second click does nothing while the first is in progress", async () => {
  const ends: (() => void)[] = [];
  const work = vi.fn(() => new Promise<void>((resolve) => ends.push(resolve)));
  const { result } = renderHook(() => useOnce(work));
  act(() => {
    void result.current[0]();
    void result.current[0]();
  });
  expect(work).toHaveBeenCalledTimes(1);
  expect(result.current[1]).toBe(true);
  await act(async () => ends.shift()?.());
  expect(result.current[1]).toBe(false);
  act(() => void result.current[0]());
  expect(work).toHaveBeenCalledTimes(2);
});

test("a value that changes is reported once, and a known or missing one is not", () => {
  const seen: (string | undefined)[] = [];
  const hook = (known?: string | null) =>
    renderHook(
      ({ value }: { value: string | undefined }) =>
        useChange(value, () => void seen.push(value), known),
      { initialProps: { value: "a" as string | undefined } },
    );
  const { rerender } = hook();
  for (const value of ["a", "b", "b", undefined, "b", "c"]) rerender({ value });
  expect(seen).toEqual(["b", "c"]);
  hook("a");
  expect(seen).toEqual(["b", "c"]);
  hook(null);
  expect(seen).toEqual(["b", "c", "a"]);
});

test("markup in Markdown is text, links open a window, images of other origins are links", () => {
  const hostile = [
    "<script>window.ran = 1</script>",
    '<img src=x onerror="window.ran = 1">',
    "[bad](javascript:alert(1)) [good](https://example.com)",
    "![picture](https://example.com/x.png)",
    "![own](/blobs/1)",
  ].join("\n\n");
  const { container } = render(<Markdown>{hostile}</Markdown>);
  expect(container.querySelector("script, [onerror]")).toBeNull();
  expect(container.textContent).toContain("<script>window.ran = 1</script>");
  const hrefs = [...container.querySelectorAll("a")].map((link) => link.getAttribute("href"));
  expect(hrefs).toEqual(["https://example.com", "https://example.com/x.png"]);
  for (const link of container.querySelectorAll("a")) {
    expect([link.target, link.rel]).toEqual(["_blank", "noopener noreferrer"]);
  }
  const images = [...container.querySelectorAll("img")].map((image) => image.getAttribute("src"));
  expect(images).toEqual(["/blobs/1"]);
});

test("SQL keeps every character and creates no other elements", () => {
  const statement = "SELECT '<img src=x onerror=1>' AS a -- <b>\nFROM t WHERE n > 1";
  const { container } = render(<Sql>{statement}</Sql>);
  expect(container.textContent).toBe(statement);
  expect(container.querySelector("img, b")).toBeNull();
  expect(container.querySelector(".w-sql-keyword")?.textContent).toBe("SELECT");
});

test("rows without a value are sorted last, and equal rows keep their order", () => {
  const rows = [{ a: 10 }, { a: null }, { a: 9 }, { a: 10, b: 1 }];
  expect(sorted(rows, ({ a }) => a, "ascending").map(({ a }) => a)).toEqual([9, 10, 10, null]);
  const down = sorted(rows, ({ a }) => a, "descending");
  expect(down).toEqual([{ a: 10 }, { a: 10, b: 1 }, { a: 9 }, { a: null }]);
  const texts = ["第10条", "第9条"];
  expect(sorted(texts, (text) => text, "ascending")).toEqual(["第9条", "第10条"]);
  const up = nextSorting(undefined, "a");
  expect(nextSorting(nextSorting(up, "a"), "a")).toBeUndefined();
  expect(nextSorting(up, "b")).toEqual({ key: "b", direction: "ascending" });
});

test("files are accepted by type or by extension", () => {
  const png = { name: "a.PNG", type: "image/png" };
  expect(isAccepted(png, "image/*")).toBe(true);
  expect(isAccepted(png, ".csv, .png")).toBe(true);
  expect(isAccepted(png, "image/jpeg,.csv")).toBe(false);
});

test("files that are added before the next render are all kept", () => {
  const { result } = renderHook(() => useFiles({ accept: ".txt", maxBytes: 10, most: 2 }));
  act(() => {
    result.current.add([new File(["a"], "a.txt")]);
    result.current.add([new File(["b"], "b.txt")]);
  });
  expect(result.current.items.map(({ file }) => file.name)).toEqual(["a.txt", "b.txt"]);
});

test("a restored connection calls the function of the last render", () => {
  const first = vi.fn();
  const last = vi.fn();
  const initialProps = { onReturn: first };
  const { rerender } = renderHook(({ onReturn }) => useConnection(onReturn), { initialProps });
  act(lost);
  rerender({ onReturn: last });
  expect(last).not.toHaveBeenCalled();
  act(reached);
  expect(last).toHaveBeenCalledTimes(1);
  expect(first).not.toHaveBeenCalled();
});

test("a tool call without an output was cancelled if no run is active", () => {
  expect(toolState("input-available", true)).toBe("running");
  expect(toolState("input-streaming", false)).toBe("cancelled");
  expect(toolState("output-available", false)).toBe("done");
  expect(toolState("output-error", true)).toBe("failed");
});

test("bars begin at zero", () => {
  expect(barRange(50, 100)).toEqual([0, 108]);
  expect(barRange(-100, -50)).toEqual([-108, 0]);
  expect(barRange(-50, 50)).toEqual([-58, 58]);
  expect(barRange(0, 0)[1]).toBeGreaterThan(0);
});

test("tabs are notified of posts of other tabs", async () => {
  const heard = vi.fn();
  const own = vi.fn();
  renderHook(() => useTabs("test-tabs", heard));
  const elsewhere = vi.fn();
  renderHook(() => useTabs("test-elsewhere", elsewhere));
  const { result, unmount } = renderHook(() => useTabs("test-tabs", own));
  result.current("a thread");
  await vi.waitFor(() => expect(heard.mock.calls).toEqual([["a thread"]]));
  expect(own).not.toHaveBeenCalled();
  expect(elsewhere).not.toHaveBeenCalled();
  unmount();
  result.current("too late");
});
