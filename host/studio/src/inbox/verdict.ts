// What the keys for approving, editing and rejecting mean for an interrupt. Its schema tells them by
// common names of such answers.
import { type Draft, draftOf, NONE, NOT_CHOSEN } from "../part/schema-form/draft.ts";
import type { Field } from "../part/schema-form/field.ts";
import { constantsOf } from "../part/schema-form/label.ts";

export type Kind = "approve" | "edit" | "reject";

const WORDS: Readonly<Record<Kind, ReadonlySet<string>>> = {
  approve: new Set(["approve", "approved", "accept", "accepted", "allow", "confirm", "yes", "ok"]),
  edit: new Set(["edit", "modify", "change"]),
  reject: new Set(["reject", "rejected", "decline", "declined", "deny", "denied", "refuse", "no"]),
};

/** Names of properties whose value `true` approves. */
const APPROVALS = new Set([
  "approve",
  "approved",
  "accept",
  "accepted",
  "allow",
  "confirm",
  "confirmed",
  "ok",
]);

/** A kind of answer. */
export interface Verdict {
  draft: Draft;
  /** True if a user may want to add something before the answer is sent. */
  hasFields: boolean;
}

/**
 * Returns the draft for a kind of answer, which keeps what a user has entered for it; `undefined` if
 * the interrupt has no such answer.
 */
export function verdictOf(
  field: Field,
  kind: Kind,
  payload: unknown,
  entered: Draft = NONE,
): Verdict | undefined {
  switch (field.kind) {
    case "boolean":
      if (kind === "edit") return undefined;
      return { draft: { kind: "value", value: kind === "approve" }, hasFields: false };
    case "enum": {
      const found = field.values.find(({ value }) => isWord(value, kind));
      return found && { draft: { kind: "value", value: found.value }, hasFields: false };
    }
    case "choice":
      return ofChoice(field, kind, payload, entered);
    case "object":
      return ofObject(field, kind, payload, entered);
    default:
      return undefined;
  }
}

function isWord(value: unknown, kind: Kind): boolean {
  return typeof value === "string" && WORDS[kind].has(value.toLowerCase());
}

function ofChoice(
  field: Field & { kind: "choice" },
  kind: Kind,
  payload: unknown,
  entered: Draft,
): Verdict | undefined {
  const index = field.options.findIndex((option) =>
    [...constantsOf(option), option.title].some((value) => isWord(value, kind)),
  );
  const option = field.options[index];
  if (index === NOT_CHOSEN || option === undefined) return undefined;
  const given = kind === "edit" ? proposed(option, payload) : undefined;
  const before = entered.kind === "choice" ? entered.drafts : [];
  const chosen = before[index] ?? draftOf(option, given);
  const drafts = field.options.map((_, at) => (at === index ? chosen : before[at]));
  return { draft: { kind: "choice", index, drafts }, hasFields: hasFields(option) };
}

function hasFields(option: Field): boolean {
  if (option.kind !== "object") return option.kind !== "const";
  return option.properties.some(({ field }) => field.kind !== "const");
}

/**
 * Returns the value that a user edits: the properties of the alternative that the payload has,
 * such as the arguments of a call.
 */
function proposed(option: Field, payload: unknown): unknown {
  if (option.kind !== "object" || typeof payload !== "object" || payload === null) return undefined;
  const entries = option.properties.flatMap(({ name, field }) => {
    if (field.kind === "const") return [[name, field.value] as const];
    if (!Object.hasOwn(payload, name)) return [];
    const value: unknown = Reflect.get(payload, name);
    return [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

/** An object decides by the only required property that has such an answer. */
function ofObject(
  field: Field & { kind: "object" },
  kind: Kind,
  payload: unknown,
  entered: Draft,
): Verdict | undefined {
  const found = field.properties.flatMap(({ name, field: of, isRequired }) => {
    const isDecision =
      of.kind === "boolean" ? APPROVALS.has(name.toLowerCase()) : of.kind === "enum";
    const verdict = isRequired && isDecision ? verdictOf(of, kind, payload) : undefined;
    return verdict === undefined ? [] : [{ name, verdict }];
  });
  const [only, second] = found;
  if (only === undefined || second !== undefined) return undefined;
  const whole = entered.kind === "object" ? entered : draftOf(field, {});
  if (whole.kind !== "object") return undefined;
  const drafts = new Map(whole.drafts).set(only.name, only.verdict.draft);
  return { draft: { kind: "object", drafts }, hasFields: field.properties.length > 1 };
}
