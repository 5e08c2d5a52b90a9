// Lists in pages, while rows are added, moved and removed between two requests.
import { expect, test } from "vitest";
import { appended, type Order, type Page, renewed } from "../../src/api/pages.ts";

interface Row {
  id: string;
  at: number;
}

const ORDER: Order<Row> = { id: ({ id }) => id, time: ({ at }) => at };

/** Returns rows such as `a9`, which is the row `a` of the time 9. */
const rows = (...names: string[]): Row[] =>
  names.map((name) => ({ id: name.slice(0, 1), at: Number(name.slice(1)) }));

const page = (next: string | undefined, ...names: string[]): Page<Row> => ({
  items: rows(...names),
  next,
});

const known = (next: string | undefined, ...names: string[]) => ({ rows: rows(...names), next });

test("the first page is the list, until more is asked for", () => {
  expect(renewed(undefined, page("2", "a9", "b8"), ORDER)).toEqual(known("2", "a9", "b8"));
});

test("a row that leaves the first page for newer ones stays in the list", () => {
  const before = known("4", "a9", "b8", "c7", "d6");
  const after = renewed(before, page("2", "e11", "a9"), ORDER);
  expect(after).toEqual(known("4", "e11", "a9", "b8", "c7", "d6"));
});

test("a row that moved to the first page is in the list once", () => {
  const before = known("4", "a9", "b8", "c7", "d6");
  const after = renewed(before, page("2", "d12", "a9"), ORDER);
  expect(after).toEqual(known("4", "d12", "a9", "b8", "c7"));
});

test("a row that is missing in its place was removed or no longer matches", () => {
  const before = known("4", "a9", "b8", "c7", "d6");
  const after = renewed(before, page("2", "a9", "c7"), ORDER);
  expect(after).toEqual(known("4", "a9", "c7", "d6"));
});

test("a first page without a next one is the whole list", () => {
  const before = known("4", "a9", "b8", "c7");
  expect(renewed(before, page(undefined, "a9"), ORDER)).toEqual(known(undefined, "a9"));
  expect(renewed(before, page(undefined), ORDER)).toEqual(known(undefined));
});

test("a further page repeats no row", () => {
  const after = appended(known("2", "a9", "b8"), page("4", "b8", "c7"), ORDER);
  expect(after).toEqual(known("4", "a9", "b8", "c7"));
});
