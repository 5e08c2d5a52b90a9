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

/** A page whose rows are as many as a page can have. */
const page = (next: string | undefined, ...names: string[]): Page<Row> => ({
  items: rows(...names),
  next,
  isFull: true,
});

/** A page of a search that the host stopped. */
const short = (next: string, ...names: string[]): Page<Row> => ({
  ...page(next, ...names),
  isFull: false,
});

/** What is known of a list; the first page had the rows before the number. */
const known = (first: number, next: string | undefined, ...names: string[]) => {
  const all = rows(...names);
  return { rows: all, next, first: all.slice(0, first).map(ORDER.id) };
};

test("the first page is the list, until more is asked for", () => {
  expect(renewed(undefined, page("2", "a9", "b8"), ORDER)).toEqual(known(2, "2", "a9", "b8"));
});

test("a row that leaves the first page for newer ones stays in the list", () => {
  const before = known(2, "4", "a9", "b8", "c7", "d6");
  const after = renewed(before, page("2", "e11", "a9"), ORDER);
  expect(after).toEqual(known(2, "4", "e11", "a9", "b8", "c7", "d6"));
});

test("a row that moved to the first page is in the list once", () => {
  const before = known(2, "4", "a9", "b8", "c7", "d6");
  const after = renewed(before, page("2", "d12", "a9"), ORDER);
  expect(after).toEqual(known(2, "4", "d12", "a9", "b8", "c7"));
});

test("a row that is missing in its place was removed or no longer matches", () => {
  const before = known(2, "4", "a9", "b8", "c7", "d6");
  const after = renewed(before, page("2", "a9", "c7"), ORDER);
  expect(after).toEqual(known(2, "4", "a9", "c7", "d6"));
});

test("the list begins anew if all rows of the first page are new, as there may be more", () => {
  const before = known(2, "4", "a9", "b8", "c7", "d6");
  expect(renewed(before, page("2", "f12", "e11"), ORDER)).toEqual(known(2, "2", "f12", "e11"));
  const after = renewed(known(2, "2", "a9", "b8"), page("7", "c7", "d6"), ORDER);
  expect(after).toEqual(known(2, "7", "c7", "d6"));
});

test("a first page without a next one is the whole list", () => {
  const before = known(2, "4", "a9", "b8", "c7");
  expect(renewed(before, page(undefined, "a9"), ORDER)).toEqual(known(1, undefined, "a9"));
  expect(renewed(before, page(undefined), ORDER)).toEqual(known(0, undefined));
});

test("a search that stops early keeps what it found later, and where it is", () => {
  const nothing = known(0, "40", "c7");
  expect(renewed(nothing, short("20"), ORDER)).toEqual(nothing);
  expect(renewed(known(0, "60"), short("20"), ORDER)).toEqual(known(0, "60"));
  expect(renewed(nothing, short("21", "e11"), ORDER)).toEqual(known(1, "40", "e11", "c7"));
});

test("a search that stops early and lacks a row that it had begins anew", () => {
  const before = known(2, undefined, "a9", "b8", "c7");
  expect(renewed(before, short("20", "a9"), ORDER)).toEqual(known(1, "20", "a9"));
  expect(renewed(before, short("20", "b8"), ORDER)).toEqual(known(1, undefined, "b8", "c7"));
});

test("a further page repeats no row", () => {
  const after = appended(known(2, "2", "a9", "b8"), "2", page("4", "b8", "c7"), ORDER);
  expect(after).toEqual(known(2, "4", "a9", "b8", "c7"));
});

test("a further page is dropped if the list began anew while it was read", () => {
  const before = known(2, "4", "a9", "b8", "c7", "d6");
  const anew = renewed(before, page("2", "f12", "e11"), ORDER);
  expect(appended(anew, "4", page("6", "g5", "h4"), ORDER)).toEqual(anew);
});
