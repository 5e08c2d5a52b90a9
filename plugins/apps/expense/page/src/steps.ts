// Tool calls in one line for users.
import { type Fields, fieldsOf } from "@wattle/page";
import { dateTime, yuan } from "./format.ts";

/** Title, summary and error of a card. */
export interface Step {
  title: string;
  summary: string | undefined;
  error: string | undefined;
}

const TITLES: Record<string, string> = {
  parseDateExpression: "换算日期",
  saveExpenseToLark: "保存到账本",
};

const DAYS: Record<number, string> = {
  [-2]: "前天",
  [-1]: "昨天",
  0: "今天",
  1: "明天",
  2: "后天",
};

function words(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the words for a date expression, or `undefined` if it is invalid. */
export function saidDate(input: unknown): string | undefined {
  const { type, offset, year, month, day } = fieldsOf(input);
  if (type === "relative" && typeof offset === "number") {
    return DAYS[offset] ?? `${Math.abs(offset)} 天${offset < 0 ? "前" : "后"}`;
  }
  if (type === "absolute" && typeof month === "number" && typeof day === "number") {
    return `${typeof year === "number" ? `${year}年` : ""}${month}月${day}日`;
  }
  return undefined;
}

/** Returns the content of the card of a tool call. */
export function stepOf(name: string, input: unknown, output: unknown, zone: string): Step {
  const title = TITLES[name] ?? name;
  if (name === "parseDateExpression") return { title, ...parsed(input, fieldsOf(output), zone) };
  if (name === "saveExpenseToLark") return { title, ...saved(fieldsOf(input), fieldsOf(output)) };
  return { title, summary: undefined, error: undefined };
}

function parsed(input: unknown, output: Fields, zone: string): Omit<Step, "title"> {
  const said = saidDate(input) ?? "日期";
  const { timestamp } = output;
  const told = typeof timestamp === "number" ? `${said} → ${dateTime(timestamp, zone)}` : said;
  return { summary: told, error: words(output.warning) };
}

function saved(input: Fields, output: Fields): Omit<Step, "title"> {
  const data = fieldsOf(output.data);
  const kept = fieldsOf(data.fields);
  const amount = kept.金额 ?? input.amount;
  const parts = [
    words(kept.备注) ?? words(input.remark),
    words(kept.分类) ?? words(input.category),
    words(kept.收支) ?? (input.type === "income" ? "收入" : "支出"),
    typeof amount === "number" ? yuan(amount) : undefined,
    words(data.time),
  ];
  const summary = parts.filter((part) => part !== undefined).join(" · ");
  const error = output.status === "error" ? (words(output.message) ?? "没有保存") : undefined;
  return { summary, error };
}
