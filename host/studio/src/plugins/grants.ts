// What a plugin requests beside what it is granted, by kind of permission, without React.
import type { Plugin } from "./read.ts";

type Missing = Plugin["missing"][number];

/** A kind of permission. */
export interface PermissionRow {
  need: string;
  requested: readonly string[];
  granted: readonly string[];
  /** The lines that grant what is missing. */
  missing: readonly Missing[];
}

const KINDS = [
  "llm",
  "http",
  "sql",
  "tools",
  "memory",
  "tenant_routes",
  "environment",
  "folders",
] as const;

/** Returns the kinds of permissions that a plugin requests or is granted. */
export function permissionsOf({ needs, grants, missing }: Plugin): PermissionRow[] {
  const known = KINDS.map((need) => ({
    need,
    requested: textsOf(needs[need]),
    granted: textsOf(grants[need]),
    missing: missing.filter((it) => it.need === need),
  }));
  const kinds: readonly string[] = KINDS;
  // Such as the policy for calls in doubt, which is no permission for anything by itself.
  const others = new Set(missing.map((it) => it.need).filter((need) => !kinds.includes(need)));
  const further = Array.from(others, (need) => ({
    need,
    requested: [],
    granted: [],
    missing: missing.filter((it) => it.need === need),
  }));
  return [...known, ...further].filter(
    (row) => row.requested.length + row.granted.length + row.missing.length > 0,
  );
}

/** Returns rules as texts. Databases are an object, in which each name has a rule. */
function textsOf(rules: unknown): string[] {
  if (Array.isArray(rules)) return rules.map(ruleText);
  if (typeof rules !== "object" || rules === null) return [];
  return Object.entries(rules).map(([name, rule]) => `${name}: ${ruleText(rule)}`);
}

/** Returns a rule as text. Fields that are empty or false say nothing. */
function ruleText(rule: unknown): string {
  if (typeof rule !== "object" || rule === null) return String(rule);
  const fields = Object.entries(rule).filter(([, value]) => !isNothing(value));
  return fields.map(([name, value]) => `${name} ${valueText(value)}`).join("; ");
}

function isNothing(value: unknown): boolean {
  return value === null || value === false || (Array.isArray(value) && value.length === 0);
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns lines of TOML with the header of their table, to be added to the configuration. */
export function tomlOf({ table, line }: Missing): string {
  return `[${table}]\n${line}\n`;
}
