// Search parameters: what an address means, and which address a filter has.
import { expect, test } from "vitest";
import { publicPath } from "../../src/router/base.ts";
import { threadRoute, threadsRoute } from "../../src/router/links.tsx";
import {
  parseSearch,
  readSearch,
  stringifySearch,
  withValue,
  writeSearch,
} from "../../src/router/search.ts";
import { FILTER } from "../../src/threads/filter.ts";

test("an address is read and written without a loss", () => {
  const filter = { app: "a&b=c d", status: "error", tenant: "ü/1" } as const;
  expect(readSearch(writeSearch(filter), FILTER)).toEqual(filter);
  expect(stringifySearch(parseSearch(writeSearch(filter)))).toBe(writeSearch(filter));
});

test("what is unknown or not valid is dropped", () => {
  const long = "x".repeat(1_000);
  for (const search of ["?other=1", "?status=lost", "?app=", `?app=${long}`, "?__proto__=1", "%"]) {
    expect(readSearch(search, FILTER)).toEqual({});
  }
});

test("a number is a text", () => {
  expect(parseSearch("?app=1&at=true")).toEqual({ app: "1", at: "true" });
});

test("a filter without a value is not in the address", () => {
  expect(threadsRoute()).toBe("/threads");
  expect(threadsRoute({ status: "idle" })).toBe("/threads?status=idle");
  expect(withValue({ app: "a", status: "idle" }, FILTER, "status", "")).toEqual({ app: "a" });
  expect(withValue({}, FILTER, "status", "lost")).toEqual({});
});

test("an id is one segment of a path", () => {
  expect(threadRoute("a/b?c#d")).toBe("/threads/a%2Fb%3Fc%23d");
  expect(threadRoute("t", "acme")).toBe("/threads/t?tenant=acme");
  expect(publicPath("//evil.test/x")).toBe("/evil.test/x");
});
