// Edits that are saved by themselves.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DEBOUNCE_MS, useAutosave } from "../src/autosave.ts";

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

interface Edit {
  value: number;
}

/** Renders an autosave whose saves end when the test ends them. */
function saver(left?: Edit) {
  const sent: { value: number; end: (error?: Error) => void }[] = [];
  const save = ({ value }: Edit) =>
    new Promise((resolve, reject) => {
      sent.push({ value, end: (error) => (error ? reject(error) : resolve(undefined)) });
    });
  const client = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useAutosave("s", save, left), { wrapper });
  const state = () => result.current.state;
  const change = (value?: number) =>
    act(() => result.current.setEdit(value === undefined ? undefined : { value }));
  const flush = () => act(() => result.current.flush());
  return { sent, state, change, flush };
}

const pass = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms));

test("s3_52 edits are saved 900 milliseconds after the last one", async () => {
  const { sent, state, change } = saver();
  expect(state()).toBe("saved");
  change(1);
  await pass(DEBOUNCE_MS - 1);
  change(2);
  await pass(DEBOUNCE_MS - 1);
  expect([sent, state()]).toEqual([[], "changed"]);
  await pass(2);
  expect([sent.map(({ value }) => value), state()]).toEqual([[2], "saving"]);
  sent[0]?.end();
  await pass(1);
  expect(state()).toBe("saved");
});

test("s3_52 the newest value is saved last", async () => {
  const { sent, state, change } = saver();
  change(1);
  await pass(DEBOUNCE_MS + 1);
  change(2);
  await pass(DEBOUNCE_MS + 1);
  expect([sent.length, state()]).toEqual([1, "changed"]);
  sent[0]?.end();
  await pass(DEBOUNCE_MS - 1);
  expect(sent.length).toBe(1);
  await pass(2);
  expect(sent.map(({ value }) => value)).toEqual([1, 2]);
  sent[1]?.end();
  await pass(1);
  expect(state()).toBe("saved");
});

test("s3_52 a value that was not saved is kept, and a retry saves it", async () => {
  const { sent, state, change, flush } = saver();
  change(1);
  await pass(DEBOUNCE_MS + 1);
  sent[0]?.end(new Error("away"));
  await pass(DEBOUNCE_MS * 2);
  expect([sent.length, state()]).toEqual([1, "failed"]);
  flush();
  await pass(1);
  expect(state()).toBe("saving");
  sent[1]?.end();
  await pass(1);
  expect([sent.map(({ value }) => value), state()]).toEqual([[1, 1], "saved"]);
});

test("s3_52 a page that is left saves the waiting value once", async () => {
  const { sent, change, flush } = saver();
  flush();
  change(1);
  flush();
  flush();
  await pass(1);
  expect(sent.map(({ value }) => value)).toEqual([1]);
  await pass(DEBOUNCE_MS + 1);
  expect(sent.length).toBe(1);
});

test("s3_52 a value that was left is saved, and one that is dropped is not", async () => {
  const { sent, state, change } = saver({ value: 1 });
  expect(state()).toBe("changed");
  await pass(DEBOUNCE_MS + 1);
  sent[0]?.end();
  await pass(1);
  change(2);
  change(undefined);
  await pass(DEBOUNCE_MS + 1);
  expect([sent.map(({ value }) => value), state()]).toEqual([[1], "saved"]);
});
