// The filter of the list of runs: what an address means, and what the host is asked for.
import { expect, test } from "vitest";
import { readSearch, withValue, writeSearch } from "../../src/router/search.ts";
import { FILTER, queryOf, type RunsFilter } from "../../src/runs/filter.ts";

const OPERATOR = { is_operator: true, tenant_header: "x-tenant" };

test("each filter is in the address, and is read from it without a loss", () => {
  const filter = {
    text: "50% & more=?#\u202E 文字",
    status: "failed",
    app: "notes",
    graph: "main",
    tenant: "acme",
    failure: "http-status",
    metadata: 'customer=7, plan="a,b"',
    created_from_ms: "0",
    created_to_ms: "1736908200000",
  } as const satisfies Required<RunsFilter>;
  expect(readSearch(writeSearch(filter), FILTER)).toEqual(filter);
  expect(queryOf(filter, { is_operator: false })).toEqual({
    ...filter,
    metadata: '{"customer":7,"plan":"a,b"}',
    created_from_ms: 0,
    created_to_ms: 1_736_908_200_000,
  });
});

test.each(["text=", "status=idle", "metadata=customer", "created_to_ms=1.5", "limit=1"])(
  "what the host would refuse is not read from an address: %s",
  (search) => {
    expect(readSearch(`?${search}`, FILTER)).toEqual({});
  },
);

test("a filter without a value is neither in the address nor in the request", () => {
  const filter = { text: "a", status: "failed" } as const;
  expect(withValue(filter, FILTER, "text", "")).toEqual({ status: "failed" });
  expect(queryOf({}, { is_operator: false })).toEqual({});
  expect(queryOf({}, OPERATOR)).toEqual({ tenant: "*" });
});
