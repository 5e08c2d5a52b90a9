// The filter of the list of threads: what an address means, and what the host is asked for.
import { expect, test } from "vitest";
import { readSearch, withValue, writeSearch } from "../../src/router/search.ts";
import { FILTER, queryOf, type ThreadFilter } from "../../src/threads/filter.ts";

/** The access of a request whose tenant is not chosen here. */
const PLAIN = { is_operator: false };

const OPERATOR = { is_operator: true, tenant_header: "x-tenant" };

test("each filter is in the address, and is read from it without a loss", () => {
  const filter = {
    text: "50% & more=?#\u202E 文字",
    status: "error",
    app: "notes",
    graph: "main",
    tenant: "acme",
    failure: "http-status",
    metadata: 'customer=7, plan="a,b", deep={"x":[1,2]}',
    created_from_ms: "0",
    created_to_ms: "1736908200000",
    updated_from_ms: "1736908200001",
    updated_to_ms: "1736908260000",
  } as const satisfies Required<ThreadFilter>;
  expect(readSearch(writeSearch(filter), FILTER)).toEqual(filter);
  expect(queryOf(filter, PLAIN)).toEqual({
    ...filter,
    metadata: '{"customer":7,"plan":"a,b","deep":{"x":[1,2]}}',
    created_from_ms: 0,
    created_to_ms: 1_736_908_200_000,
    updated_from_ms: 1_736_908_200_001,
    updated_to_ms: 1_736_908_260_000,
  });
});

test.each([
  "text=",
  `text=${"ü".repeat(257)}`,
  `failure=${"x".repeat(513)}`,
  "metadata=customer",
  "metadata==7",
  "metadata=a=1,a=2",
  'metadata=a="open',
  `metadata=a=${"x".repeat(2_000)}`,
  "created_from_ms=-1",
  "created_to_ms=1.5",
  "updated_from_ms=yesterday",
  "updated_to_ms=999999999999999",
])("what the host would refuse is not read from an address: %s", (search) => {
  expect(readSearch(`?${search}`, FILTER)).toEqual({});
});

test("a filter without a value is neither in the address nor in the request", () => {
  expect(withValue({ text: "a", status: "idle" }, FILTER, "text", "")).toEqual({ status: "idle" });
  expect(queryOf({}, PLAIN)).toEqual({});
});

test("an operator on a host with tenants sees all tenants or the one of the filter", () => {
  expect(queryOf({}, OPERATOR)).toEqual({ tenant: "*" });
  expect(queryOf({ tenant: "acme" }, OPERATOR)).toEqual({ tenant: "acme" });
  expect(queryOf({}, { is_operator: true })).toEqual({});
  expect(queryOf({}, { ...OPERATOR, is_operator: false })).toEqual({});
});
