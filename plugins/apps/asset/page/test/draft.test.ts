// Validation of the draft, column by column.
import { describe, expect, it } from "vitest";
import type { Review } from "../src/api.ts";
import {
  blankRow,
  COLUMNS,
  confirmedRows,
  draftOf,
  type FieldName,
  flaws,
} from "../src/confirm/draft.ts";

const payload: Review = {
  type: "operation",
  rows: [
    {
      ticker: "UNKNOWN",
      name: "青杉玩偶",
      action: "sell",
      quantity: null,
      price: 0,
      currency: "",
      tradedAt: "2025-01-15",
      memo: "首笔",
    },
  ],
  missingFields: ["rows[0].ticker", "rows[0].quantity"],
  warnings: [],
};

function flawOf(field: FieldName, text: string, kind: "operation" | "holding" = "operation") {
  return COLUMNS[kind].find((column) => column.field === field)?.check(text);
}

describe("columns", () => {
  it("S0-87 have the required headings", () => {
    const headings = (kind: "operation" | "holding") => COLUMNS[kind].map((it) => it.heading);
    expect(headings("operation")).toEqual([
      "操作",
      "股票代码",
      "股票名称",
      "数量",
      "价格",
      "币种",
      "日期",
    ]);
    expect(headings("holding")).toEqual(["股票代码", "股票名称", "持仓数量", "成本价", "币种"]);
  });

  it("validate numbers, tickers, currencies and dates", () => {
    const checks: [FieldName, string, boolean][] = [
      ["ticker", "0700.HK", true],
      ["ticker", "unknown", false],
      ["ticker", " ", false],
      ["ticker", "07 00", false],
      ["quantity", "1,000.5", true],
      ["quantity", "0", false],
      ["quantity", "-1", false],
      ["quantity", "100股", false],
      ["quantity", "1e3", false],
      ["price", "0", true],
      ["price", "-0.01", false],
      ["price", "", false],
      ["currency", "", true],
      ["currency", "hkd", true],
      ["currency", "HK$", false],
      ["tradedAt", "", true],
      ["tradedAt", "2024-02-29", true],
      ["tradedAt", "2025-02-29", false],
      ["tradedAt", "2025/01/02", false],
    ];
    for (const [field, text, fits] of checks) {
      expect(flawOf(field, text) === undefined, `${field} ${text}`).toBe(fits);
    }
    expect(flawOf("costPrice", "", "holding")).toBe("请补充");
  });
});

describe("rows", () => {
  it("clear an unknown ticker and keep all other values", () => {
    const rows = draftOf(payload);
    expect(rows[0]?.texts).toMatchObject({ ticker: "", name: "青杉玩偶", price: "0" });
    expect(flaws("operation", rows).map(({ row, field }) => `${row}.${field}`)).toEqual([
      "0.ticker",
      "0.quantity",
    ]);
  });

  it("S0-88 require a currency if the ticker does not determine it", () => {
    const [known] = payload.rows;
    if (known === undefined) throw new Error("a row");
    const rows = draftOf({
      ...payload,
      rows: [{ ...known, ticker: "LON:VOD", quantity: 1 }],
      missingFields: ["rows[0].currency"],
    });
    const [row] = rows;
    if (row === undefined) throw new Error("a row");
    const reasons = () => flaws("operation", rows).map(({ field, reason }) => [field, reason]);
    expect(reasons()).toEqual([["currency", "请补充"]]);
    row.texts.currency = "gbp";
    expect(reasons()).toEqual([]);
    row.texts.currency = "";
    row.texts.ticker = "VOD";
    expect(reasons()).toEqual([]);
  });

  it("are stored with numbers and with values that cannot be edited", () => {
    const [row] = draftOf(payload);
    if (row === undefined) throw new Error("a row");
    row.texts.ticker = " 9992.hk ";
    row.texts.quantity = "1,000";
    expect(confirmedRows("operation", [row])).toEqual([
      {
        ticker: "9992.HK",
        name: "青杉玩偶",
        action: "sell",
        quantity: 1000,
        price: 0,
        currency: "",
        tradedAt: "2025-01-15",
        memo: "首笔",
      },
    ]);
    row.texts.costPrice = "2.5";
    expect(confirmedRows("holding", [row])[0]).not.toHaveProperty("action");
  });

  it("have unique keys", () => {
    expect(blankRow().key).not.toBe(blankRow().key);
  });
});
