// When a list scrolls to a row by itself.
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { VirtualList } from "../../src/part/virtual-list.tsx";

/** The rows to which the list has scrolled, by their indexes. */
const scrolled = vi.hoisted((): number[] => []);

vi.mock("@tanstack/react-virtual", () => ({
  useVirtualizer: () => ({
    scrollToIndex: (index: number) => scrolled.push(index),
    getVirtualItems: () => [],
    getTotalSize: () => 0,
    scrollOffset: 0,
  }),
}));

afterEach(() => {
  cleanup();
  scrolled.length = 0;
});

/** Shows rows, and returns what shows other ones. Without a selected row, the last one is shown. */
function showRows() {
  const listOf = (rows: readonly string[], current?: string) => {
    const index = current === undefined ? rows.length - 1 : rows.indexOf(current);
    return (
      <VirtualList
        label="Rows"
        columns={[{ key: "name", header: "Name", render: (row) => row }]}
        rows={rows}
        rowKey={(row) => row}
        isComplete
        current={current}
        shown={index === -1 ? undefined : index}
      />
    );
  };
  const { rerender } = render(listOf([]));
  scrolled.length = 0;
  return (rows: readonly string[], current?: string) => rerender(listOf(rows, current));
}

test("a list scrolls to the selected row when it is selected, not when rows are added", () => {
  const change = showRows();
  change(["c", "b", "a"], "b");
  expect(scrolled).toEqual([1]);
  change(["d", "c", "b", "a"], "b");
  change(["e", "d", "c", "b", "a"], "b");
  expect(scrolled).toEqual([1]);
  change(["e", "d", "c", "b", "a"], "a");
  expect(scrolled).toEqual([1, 4]);
});

test("a list scrolls to a selected row that comes later", () => {
  const change = showRows();
  change(["c", "b"], "a");
  expect(scrolled).toEqual([]);
  change(["c", "b", "a"], "a");
  expect(scrolled).toEqual([2]);
});

test("a list without a selected row follows the newest one", () => {
  const change = showRows();
  change(["a"]);
  change(["a", "b"]);
  expect(scrolled).toEqual([0, 1]);
});
