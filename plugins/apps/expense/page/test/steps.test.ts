// Content of tool cards.
import { expect, test } from "vitest";
import { saidDate, stepOf } from "../src/steps.ts";

const ZONE = "Asia/Shanghai";

test.each([
  [{ type: "relative", offset: -1, unit: "day" }, "昨天"],
  [{ type: "relative", offset: 0, unit: "day" }, "今天"],
  [{ type: "relative", offset: -7, unit: "day" }, "7 天前"],
  [{ type: "relative", offset: 3, unit: "day" }, "3 天后"],
  [{ type: "absolute", month: 1, day: 2 }, "1月2日"],
  [{ type: "absolute", year: 2025, month: 1, day: 2 }, "2025年1月2日"],
  [{ type: "week" }, undefined],
  ["昨天", undefined],
  [undefined, undefined],
])("%j is shown as %s", (input, said) => {
  expect(saidDate(input)).toBe(said);
});

test("a date card has the resolved date or the warning of the tool", () => {
  const input = { type: "relative", offset: -1, unit: "day" };
  const output = { timestamp: 1_736_784_000_000, input };
  expect(stepOf("parseDateExpression", input, output, ZONE)).toEqual({
    title: "换算日期",
    summary: "昨天 → 2025-01-14 00:00:00",
    error: undefined,
  });
  const unclear = stepOf("parseDateExpression", {}, { timestamp: 0, warning: "无法识别" }, ZONE);
  expect(unclear.error).toBe("无法识别");
  expect(stepOf("parseDateExpression", input, undefined, ZONE).summary).toBe("昨天");
});

test("a booking card has the stored fields or the error", () => {
  const input = { remark: "打车", category: "交通", amount: 20 };
  expect(stepOf("saveExpenseToLark", input, undefined, ZONE).summary).toBe(
    "打车 · 交通 · 支出 · ¥20.00",
  );
  const fields = { 备注: "打车", 分类: "交通", 金额: 20.5, 收支: "支出" };
  const data = { fields, time: "2025-01-14 00:00:00" };
  const saved = stepOf("saveExpenseToLark", input, { status: "success", data }, ZONE);
  expect(saved.summary).toBe("打车 · 交通 · 支出 · ¥20.50 · 2025-01-14 00:00:00");
  const refused = { status: "error", message: "记账失败：没有权限" };
  expect(stepOf("saveExpenseToLark", input, refused, ZONE).error).toBe("记账失败：没有权限");
});

test("a card of an unknown tool has the tool's name", () => {
  expect(stepOf("fly", {}, {}, ZONE)).toEqual({
    title: "fly",
    summary: undefined,
    error: undefined,
  });
});
