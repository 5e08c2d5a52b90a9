// Rendering of a long table after an edit.
import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { AssetConfirmTable } from "../src/confirm/asset-confirm-table.tsx";
import { blankRow, COLUMNS, type Column } from "../src/confirm/draft.ts";

afterEach(cleanup);

it("renders only the edited row of 200", () => {
  // A row checks each of its columns when it is rendered.
  const check = vi.spyOn(COLUMNS.operation[0] as Column, "check");
  const handlers = { onEdit: vi.fn(), onDelete: vi.fn() };
  const table = (rows: ReturnType<typeof blankRow>[]) => (
    <AssetConfirmTable
      kind="operation"
      rows={rows}
      refused={new Set()}
      fresh={undefined}
      {...handlers}
    />
  );
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
