// Rendering of the table: its rows after an edit, and the reasons of invalid cells.
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { AssetConfirmTable } from "../src/confirm/asset-confirm-table.tsx";
import { blankRow, COLUMNS, type Column, type DraftRow } from "../src/confirm/draft.ts";

afterEach(cleanup);

const HANDLERS = { onEdit: vi.fn(), onDelete: vi.fn() };

function table(rows: readonly DraftRow[], refused: readonly string[] = []) {
  return (
    <AssetConfirmTable
      kind="operation"
      rows={rows}
      refused={new Set(refused)}
      fresh={undefined}
      {...HANDLERS}
    />
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

it("S0-88 describes each invalid cell by its reason", () => {
  const row = blankRow();
  row.texts.quantity = "0";
  render(table([row], ["0.name"]));
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
