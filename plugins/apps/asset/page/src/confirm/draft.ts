// Draft of the table: the texts that a person types, and their validation.
import type { Confirmed, HoldingItem, OperationItem, Review } from "../api.ts";

/** Database table of the rows. */
export type Kind = "operation" | "holding";

/** Texts of an added row. */
const BLANK = {
  action: "buy",
  ticker: "",
  name: "",
  quantity: "",
  price: "",
  costPrice: "",
  currency: "",
  tradedAt: "",
};

export type FieldName = keyof typeof BLANK;

export interface Column {
  field: FieldName;
  /** Heading as in S0-87. */
  heading: string;
  /** Returns why a text is invalid, or `undefined` if it can be stored. */
  check: (text: string) => string | undefined;
  width: number;
  /** Placeholder of a cell that may stay empty. */
  sample?: string;
}

/** A row as a person types it. */
export interface DraftRow {
  /** Stable while rows are added and deleted. */
  key: number;
  texts: Record<FieldName, string>;
  memo: string | undefined;
  /** Ticker that does not determine its currency, according to the review. */
  undecided: string | undefined;
}

/** Ticker of a row whose security no source knows. */
const UNKNOWN = "UNKNOWN";

const MISSING = "请补充";

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

function parsed(text: string): number | undefined {
  const plain = text.trim().replaceAll(",", "").replaceAll("，", "");
  return NUMBER.test(plain) ? Number(plain) : undefined;
}

function ticker(text: string): string | undefined {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed.toUpperCase() === UNKNOWN) return MISSING;
  return /\s/.test(trimmed) ? "股票代码不能含空格" : undefined;
}

function quantity(text: string): string | undefined {
  if (text.trim() === "") return MISSING;
  const value = parsed(text);
  return value !== undefined && value > 0 ? undefined : "数量必须是大于 0 的数字";
}

function price(text: string): string | undefined {
  if (text.trim() === "") return MISSING;
  const value = parsed(text);
  return value !== undefined && value >= 0 ? undefined : "价格必须是不小于 0 的数字";
}

function currency(text: string): string | undefined {
  const isCode = text.trim() === "" || /^[A-Za-z]{3}$/.test(text.trim());
  return isCode ? undefined : "币种必须是三个字母，如 HKD";
}

/** Checks that a text is an existing date. An empty text means the current date. */
function day(typed: string): string | undefined {
  const text = typed.trim();
  if (text === "") return undefined;
  const date = new Date(`${text}T00:00:00Z`);
  const isDay =
    DAY.test(text) && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
  return isDay ? undefined : "日期格式为 YYYY-MM-DD";
}

const anything = () => undefined;

export const COLUMNS: Record<Kind, readonly Column[]> = {
  operation: [
    { field: "action", heading: "操作", check: anything, width: 6 },
    { field: "ticker", heading: "股票代码", check: ticker, width: 9 },
    { field: "name", heading: "股票名称", check: anything, width: 10 },
    { field: "quantity", heading: "数量", check: quantity, width: 7 },
    { field: "price", heading: "价格", check: price, width: 7 },
    { field: "currency", heading: "币种", check: currency, width: 5 },
    { field: "tradedAt", heading: "日期", check: day, width: 8, sample: "YYYY-MM-DD" },
  ],
  holding: [
    { field: "ticker", heading: "股票代码", check: ticker, width: 9 },
    { field: "name", heading: "股票名称", check: anything, width: 10 },
    { field: "quantity", heading: "持仓数量", check: quantity, width: 8 },
    { field: "costPrice", heading: "成本价", check: price, width: 8 },
    { field: "currency", heading: "币种", check: currency, width: 5 },
  ],
};

let lastKey = 0;

export function blankRow(): DraftRow {
  lastKey += 1;
  return { key: lastKey, texts: { ...BLANK }, memo: undefined, undecided: undefined };
}

/** Returns the rows of a review. An unknown ticker is empty, so that the person enters it. */
export function draftOf(payload: Review): DraftRow[] {
  return payload.rows.map((row, index) => {
    const draft = blankRow();
    const known = row as Partial<OperationItem & HoldingItem>;
    for (const field of Object.keys(BLANK) as FieldName[]) {
      draft.texts[field] = String(known[field] ?? BLANK[field]);
    }
    if (known.ticker === UNKNOWN) draft.texts.ticker = "";
    if (payload.missingFields.includes(`rows[${index}].currency`)) {
      draft.undecided = draft.texts.ticker.trim();
    }
    return { ...draft, memo: known.memo ?? undefined };
  });
}

export interface Flaw {
  row: number;
  field: FieldName;
  reason: string;
}

/**
 * Returns why a cell is invalid. An empty currency is invalid if the ticker does not determine it.
 */
export function flawOf(row: DraftRow, { field, check }: Column): string | undefined {
  const { texts, undecided } = row;
  const isEmpty = field === "currency" && texts.currency.trim() === "";
  return isEmpty && texts.ticker.trim() === undecided ? MISSING : check(texts[field]);
}

/** Returns all invalid cells, by row and column. */
export function flaws(kind: Kind, rows: readonly DraftRow[]): Flaw[] {
  return rows.flatMap((draft, row) =>
    COLUMNS[kind].flatMap((column) => {
      const reason = flawOf(draft, column);
      return reason === undefined ? [] : [{ row, field: column.field, reason }];
    }),
  );
}

/** Converts valid rows into the rows that are stored. */
export function confirmedRows(kind: Kind, rows: readonly DraftRow[]): Confirmed["rows"] {
  return rows.map(({ texts, memo }) => {
    const shared = {
      ticker: texts.ticker.trim().toUpperCase(),
      name: texts.name.trim(),
      quantity: parsed(texts.quantity) ?? null,
      currency: texts.currency.trim().toUpperCase(),
    };
    if (kind === "holding") return { ...shared, costPrice: parsed(texts.costPrice) ?? null };
    const operation: OperationItem = {
      ...shared,
      action: texts.action === "sell" ? "sell" : "buy",
      price: parsed(texts.price) ?? null,
      tradedAt: texts.tradedAt.trim() === "" ? null : texts.tradedAt.trim(),
    };
    return memo === undefined ? operation : { ...operation, memo };
  });
}
