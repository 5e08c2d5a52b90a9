// Rendering of the table: visible rows, rows after an edit, and reasons of invalid cells.
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { AssetConfirmTable } from "../src/confirm/asset-confirm-table.tsx";
import { blankRow, COLUMNS, type Column, type DraftRow } from "../src/confirm/draft.ts";

// The frame has room for ten rows. Without a layout it would have room for none.
beforeEach(() => void vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(440));

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const HANDLERS = { onEdit: vi.fn(), onDelete: vi.fn() };

function table(rows: readonly DraftRow[], refused: readonly string[] = [], fresh?: number) {
  return (
    <AssetConfirmTable kind="operation" rows={rows} refused={refused} fresh={fresh} {...HANDLERS} />
  );
}

it("renders only the edited row of 200", () => {
  // A row checks each of its columns when it is rendered.
  const check = vi.spyOn(COLUMNS.operation[0] as Column, "check");
  const rows = Array.from({ length: 200 }, blankRow);
  const { rerender } = render(table(rows));
  const rendered = check.mock.calls.length;
  expect(rendered).toBeGreaterThan(5);
  expect(rendered).toBeLessThan(60);
  check.mockClear();
  const edit = (row: (typeof rows)[number], index: number) =>
    index === 2 ? { ...row, texts: { ...row.texts, quantity: "7" } } : row;
  rerender(table(rows.map(edit)));
  expect(check).toHaveBeenCalledTimes(1);
});

it("renders the visible rows, some around them, and the one with the focus", () => {
  render(table(Array.from({ length: 200 }, blankRow)));
  const numbers = () =>
    screen.getAllByRole("row").flatMap(({ dataset: { index } }) => (index ? [Number(index)] : []));
  expect([numbers()[0], numbers().at(-1)]).toEqual([0, 17]);
  fireEvent.focus(screen.getByLabelText("第 3 行 数量"));
  const frame = screen.getByRole("group");
  frame.scrollTop = 4_400;
  fireEvent.scroll(frame);
  expect(numbers().slice(0, 2)).toEqual([2, 92]);
  fireEvent.blur(screen.getByLabelText("第 3 行 数量"));
  expect(numbers()[0]).toBe(92);
});

it("gives an added row the focus once", () => {
  const rows = Array.from({ length: 200 }, blankRow);
  const { rerender } = render(table(rows));
  const added = blankRow();
  rerender(table([...rows, added], [], added.key));
  const first = screen.getByLabelText("第 201 行 操作");
  expect(document.activeElement).toBe(first);
  // The row stays rendered out of sight, so that nothing takes the focus when it comes back.
  act(() => screen.getByLabelText("第 1 行 数量").focus());
  expect(screen.getByLabelText("第 201 行 操作")).toBe(first);
});

it("S0-88 describes each invalid cell by its reason", () => {
  const row = blankRow();
  row.texts.quantity = "0";
  render(table([row], ["rows[0].name", "rows[10].action", "portfolioId", "rows"]));
  const reason = (heading: string) => {
    const id = screen.getByLabelText(`第 1 行 ${heading}`).getAttribute("aria-describedby");
    return id === null ? undefined : document.getElementById(id)?.textContent;
  };
  const headings = COLUMNS.operation.map(({ heading }) => heading);
  expect(headings.map((heading) => [heading, reason(heading)])).toEqual([
    ["操作", undefined],
    ["股票代码", "请补充"],
    ["股票名称", "服务没有接受这个值"],
    ["数量", "数量必须是大于 0 的数字"],
    ["价格", "请补充"],
    ["币种", undefined],
    ["日期", undefined],
  ]);
});
