// Lists in pages, while rows are added, moved and removed between two requests.
import { expect, test } from "vitest";
import {
  appended,
  cursorToRead,
  type Known,
  type Order,
  type Page,
  renewed,
  renewedAt,
  rowsOf,
  type View,
} from "../../src/api/pages.ts";

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

/**
 * Returns a list such as `a9 b8 >2 c7 >3`: `>2` is the cursor at which the page with `c7` begins, and
 * `>3` the one at which a further page would begin.
 */
function listOf(text: string): Known<Row> {
  const [first = "", ...others] = text.split(">");
  const pages: Known<Row>["pages"][number][] = [{ cursor: undefined, rows: namesIn(first) }];
  let next: string | undefined;
  for (const other of others) {
    const [cursor = "", ...names] = other.trim().split(" ");
    if (names.length > 0) pages.push({ cursor, rows: rows(...names) });
    else next = cursor;
  }
  return { pages, next };
}

const namesIn = (text: string): Row[] => rows(...text.split(" ").filter((name) => name !== ""));

test("the first page is the list, until more is asked for", () => {
  expect(renewed(undefined, page("2", "a9", "b8"), ORDER)).toEqual(listOf("a9 b8 >2"));
});

test("a row that leaves the first page for newer ones stays in the list", () => {
  const after = renewed(listOf("a9 b8 >2 c7 d6 >4"), page("2", "e11", "a9"), ORDER);
  expect(after).toEqual(listOf("e11 a9 >2 b8 c7 d6 >4"));
});

test("a row that moved to the first page is in the list once", () => {
  const after = renewed(listOf("a9 b8 >2 c7 d6 >4"), page("2", "d12", "a9"), ORDER);
  expect(after).toEqual(listOf("d12 a9 >2 b8 c7 >4"));
});

test("a row that is missing in its place was removed or no longer matches", () => {
  const after = renewed(listOf("a9 b8 >2 c7 d6 >4"), page("3", "a9", "c7"), ORDER);
  expect(after).toEqual(listOf("a9 c7 >3 d6 >4"));
});

test("the list begins anew if all rows of the first page are new, as there may be more", () => {
  const before = listOf("a9 b8 >2 c7 d6 >4");
  expect(renewed(before, page("2", "f12", "e11"), ORDER)).toEqual(listOf("f12 e11 >2"));
  const after = renewed(listOf("a9 b8 >2"), page("7", "c7", "d6"), ORDER);
  expect(after).toEqual(listOf("c7 d6 >7"));
});

test("a first page without a next one is the whole list", () => {
  const before = listOf("a9 b8 >2 c7 >4");
  expect(renewed(before, page(undefined, "a9"), ORDER)).toEqual(listOf("a9"));
  expect(renewed(before, page(undefined), ORDER)).toEqual(listOf(""));
});

test("a search that stops early keeps what it found later, and where it is", () => {
  const nothing = listOf(">20 c7 >40");
  expect(renewed(nothing, short("20"), ORDER)).toEqual(nothing);
  expect(renewed(listOf(">60"), short("20"), ORDER)).toEqual(listOf(">60"));
  expect(renewed(nothing, short("21", "e11"), ORDER)).toEqual(listOf("e11 >21 c7 >40"));
});

test("a search that stops early and lacks a row that it had begins anew", () => {
  const before = listOf("a9 b8 >20 c7");
  expect(renewed(before, short("20", "a9"), ORDER)).toEqual(listOf("a9 >20"));
  expect(renewed(before, short("20", "b8"), ORDER)).toEqual(listOf("b8 >20 c7"));
});

test("a further page repeats no row", () => {
  const after = appended(listOf("a9 b8 >2"), "2", page("4", "b8", "c7"), ORDER);
  expect(after).toEqual(listOf("a9 b8 >2 c7 >4"));
  expect(appended(listOf("a9 >2"), "2", short("9"), ORDER)).toEqual(listOf("a9 >9"));
});

test("a further page is dropped if the list began anew while it was read", () => {
  const anew = renewed(listOf("a9 b8 >2 c7 d6 >4"), page("2", "f12", "e11"), ORDER);
  expect(appended(anew, "4", page("6", "g5", "h4"), ORDER)).toEqual(anew);
  expect(renewedAt(anew, "4", page("6", "g5", "h4"), ORDER)).toEqual(anew);
});

test("a further page that is read again has its changed rows and no others", () => {
  const before = listOf("a9 >1 b8 c7 >3 d6 e5 >5");
  const changed = { id: "c", at: 7, status: "completed" };
  const items = [...rows("b8"), changed];
  const after = renewedAt(before, "1", { items, next: "3", isFull: true }, ORDER);
  expect(rowsOf(after)[2]).toBe(changed);
  expect(after.pages[2]).toEqual(before.pages[2]);
  // `b` does not match any more, so the page has a row of the one after it.
  const shorter = renewedAt(before, "1", page("4", "c7", "d6"), ORDER);
  expect(shorter).toEqual(listOf("a9 >1 c7 d6 >4 e5 >5"));
  // All rows of the page after it are in this one.
  const longer = renewedAt(before, "1", page("5", "d6", "e5"), ORDER);
  expect(longer).toEqual(listOf("a9 >1 d6 e5 >5"));
  expect(renewedAt(before, "1", page(undefined, "b8"), ORDER)).toEqual(listOf("a9 >1 b8"));
});

test("rows that a further page no longer has room for begin the page after it", () => {
  const before = listOf("a9 >1 b8 c7 >3 d6");
  const after = renewedAt(before, "1", page("2", "f8", "b8"), ORDER);
  expect(after).toEqual(listOf("a9 >1 f8 b8 >2 c7 d6"));
  const last = renewedAt(listOf("a9 >1 b8 c7"), "1", page("2", "f8", "b8"), ORDER);
  expect(last).toEqual(listOf("a9 >1 f8 b8 >2 c7"));
});

test("a further page of a search that stops early loses nothing after it", () => {
  const before = listOf("a9 >1 b8 c7 >3 d6 >5");
  // Whether `c` still matches is found when the page after it is read.
  const after = renewedAt(before, "1", short("2", "b8"), ORDER);
  expect(after).toEqual(listOf("a9 >1 b8 >2 c7 d6 >5"));
  expect(renewedAt(after, "2", page("5", "d6"), ORDER)).toEqual(listOf("a9 >1 b8 >2 d6 >5"));
  expect(renewedAt(listOf("a9 >1 b8 >5"), "1", short("2", "b8"), ORDER).next).toBe("5");
});

test("a row that moved to a newer page is not in an older one", () => {
  const before = listOf("a9 >1 b8 >2 c7 d6 >4");
  const after = renewedAt(before, "2", page("3", "b8", "c7"), ORDER);
  expect(after).toEqual(listOf("a9 >1 b8 >2 c7 >3 d6 >4"));
});

test("further pages are read in turn, every other time one that is seen", () => {
  const list = listOf("a9 b8 >2 c7 d6 >4 e5 f4 >6 g3 h2 >8");
  const turns = (view: View | undefined) =>
    [0, 1, 2, 3, 4, 5].map((turn) => cursorToRead(list, turn, view)).join(" ");
  expect(turns(undefined)).toBe("2 4 6 2 4 6");
  expect(turns([0, 1])).toBe("2 4 6 2 4 6");
  expect(turns([6, 7])).toBe("6 2 6 4 6 6");
  expect(turns([1, 4])).toBe("2 2 4 4 2 6");
  expect(cursorToRead(listOf("a9 >1"), 0, [0, 0])).toBeUndefined();
});
