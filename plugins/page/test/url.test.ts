import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { navigate, parameter, replaceUrl, useUrl, withParameter } from "../src/hook/url.ts";

afterEach(() => {
  cleanup();
  history.replaceState(null, "", "/");
});

test("a parameter is set and removed, and the rest of the URL stays", () => {
  history.replaceState(null, "", "/?a=b#x");
  expect(parameter("session")).toBeUndefined();
  history.replaceState(null, "", withParameter("session", "s 2"));
  expect(parameter("session")).toBe("s 2");
  expect(location.search + location.hash).toBe("?a=b&session=s+2#x");
  history.replaceState(null, "", withParameter("session", undefined));
  expect(location.search + location.hash).toBe("?a=b#x");
});

test("a navigation of the page or of the browser renders again", () => {
  const { result } = renderHook(() => useUrl(() => parameter("session")));
  expect(result.current).toBeUndefined();
  const entries = history.length;
  act(() => navigate(withParameter("session", "s1")));
  expect([result.current, history.length]).toEqual(["s1", entries + 1]);
  act(() => replaceUrl(withParameter("session", "s2")));
  expect([result.current, history.length]).toEqual(["s2", entries + 1]);
  history.replaceState(null, "", "/");
  act(() => void dispatchEvent(new Event("popstate")));
  expect(result.current).toBeUndefined();
});
