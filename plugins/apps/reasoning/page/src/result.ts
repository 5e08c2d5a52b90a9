// Formats of a result.
import type { Result, Row } from "./api.ts";

const MODES: Record<string, string> = { query: "明细查询", "group-analysis": "分组统计" };

/** Field and name of the number of rows in a group, unless the model sets another alias. */
const COUNT = ["count", "数量"] as const;

/** Returns the facts about the source of the data, as pairs of name and value. */
export function factsOf(result: Result): [string, string][] {
  const { data_execution: execution, data_execution_mode: mode, llm_route: route } = result;
  const told: [string, string | undefined][] = [
    ["业务对象", execution?.ontology?.name ?? result.selected_ontology?.name],
    ["执行方式", mode && (MODES[mode] ?? mode)],
    ["使用能力", result.selected_task?.name],
    ["模型", route && `${route.provider} / ${route.model}`],
  ];
  return told.filter((fact): fact is [string, string] => Boolean(fact[1]));
}

export function countOf(count: number, total: number | null | undefined): string {
  if (count === 0) return "没有符合条件的数据。";
  const all = typeof total === "number" && total > count ? `共 ${total} 行，` : "";
  return `${all}显示 ${count} 行`;
}

export interface ResultColumn {
  key: string;
  /** Name of the attribute, or the field if it has no name. */
  header: string;
  isNumber: boolean;
}

/** Returns the names of the columns by field. */
function namesIn(result: Result): Map<string, string> {
  const names = new Map<string, string>([COUNT]);
  for (const { code, name } of result.candidate_attributes ?? []) {
    if (code && name) names.set(code, name);
  }
  for (const [field, name] of Object.entries(result.data_execution?.labels ?? {})) {
    if (name) names.set(field, name);
  }
  return names;
}

/** Returns the columns of the rows, in order of appearance. */
export function columnsOf(items: readonly Row[], result: Result): ResultColumn[] {
  const names = namesIn(result);
  const keys = [...new Set(items.flatMap((item) => Object.keys(Object(item))))];
  return keys.map((key) => ({
    key,
    header: names.get(key) ?? key,
    isNumber: items.every((item) => typeof item[key] === "number"),
  }));
}

export function shown(value: unknown): string {
  if (value === null || value === undefined || value === "") return "—";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
