// What a user has entered into a form so far. It need not be a valid value yet.
import { parsed } from "../parse-json.ts";
import { hidden } from "../text.tsx";
import type { Field } from "./field.ts";
import { LIST_ITEMS } from "./limits.ts";
import { TEXTS } from "./texts.ts";

/** An item of a list, with an id that stays when items before it are removed. */
export interface DraftItem {
  id: number;
  draft: Draft;
}

export type Draft =
  | { kind: "none" }
  /** A value that is complete whenever it is entered, such as a text or one of several values. */
  | { kind: "value"; value: unknown }
  /** The text of a number or, for any field, of a JSON document. */
  | { kind: "written"; text: string }
  | { kind: "choice"; index: number; drafts: readonly (Draft | undefined)[] }
  | { kind: "list"; items: readonly DraftItem[] }
  | { kind: "object"; drafts: ReadonlyMap<string, Draft> };

export const NONE: Draft = { kind: "none" };

/** No alternative. */
export const NOT_CHOSEN = -1;

/** Returns the text of a JSON document, in which characters that cannot be seen are escaped. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2) ?? "";
  const escaped = (char: string) =>
    hidden(char) ? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}` : char;
  return Array.from(text, escaped).join("");
}

/**
 * Returns the draft with a given value, by default with the values that the schema names. A given
 * value for which the field has no place is in the draft as JSON, so that a user sees all of it.
 */
export function draftOf(field: Field, given?: unknown): Draft {
  if (field.kind === "const") return { kind: "value", value: field.value };
  const value = given === undefined ? field.initial : given;
  if (value === undefined) return emptyDraft(field);
  const draft = placed(field, value);
  if (draft !== undefined) return draft;
  const isWritten = field.kind === "number" || field.kind === "json";
  if (given === undefined && !isWritten) return emptyDraft(field);
  return { kind: "written", text: jsonText(value) };
}

/**
 * Returns the draft of a value that a user adds: the default of the schema, if there is one.
 * Without a default, a value of one type or null begins with this type.
 */
export function addedDraft(field: Field): Draft {
  const draft = draftOf(field);
  if (field.kind !== "choice" || hasDefault(field)) return draft;
  const [index, other] = field.options.flatMap((option, at) => (isNull(option) ? [] : [at]));
  if (index === undefined || other !== undefined) return draft;
  return { kind: "choice", index, drafts: [] };
}

function isNull(field: Field): boolean {
  return field.kind === "const" && field.value === null;
}

/** Returns true if the schema has a default other than null, which stands for no value. */
function hasDefault({ initial }: Field): boolean {
  return initial !== undefined && initial !== null;
}

function emptyDraft(field: Field): Draft {
  switch (field.kind) {
    case "object":
      return { kind: "object", drafts: draftsOf(field, {}) };
    case "list":
      return { kind: "list", items: [] };
    case "choice":
      return { kind: "choice", index: NOT_CHOSEN, drafts: [] };
    default:
      return NONE;
  }
}

function placed(field: Field, given: unknown): Draft | undefined {
  switch (field.kind) {
    case "object":
      return placedObject(field, given);
    case "list":
      return placedList(field, given);
    case "choice":
      return placedChoice(field, given);
    case "enum":
      return field.values.some(({ value }) => isSame(value, given))
        ? { kind: "value", value: given }
        : undefined;
    case "boolean":
      return typeof given === "boolean" ? { kind: "value", value: given } : undefined;
    case "text":
      return typeof given === "string" ? { kind: "value", value: given } : undefined;
    case "const":
      return isSame(field.value, given) ? { kind: "value", value: given } : undefined;
    default:
      return undefined;
  }
}

function placedObject(field: Field & { kind: "object" }, given: unknown): Draft | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
  const names = new Set(field.properties.map(({ name }) => name));
  if (Object.keys(given).some((name) => !names.has(name))) return undefined;
  return { kind: "object", drafts: draftsOf(field, given) };
}

/**
 * Returns a draft for each property. One that is neither given nor required is empty, unless it has
 * a default, or only one value, which tells alternatives apart.
 */
function draftsOf(field: Field & { kind: "object" }, given: object): ReadonlyMap<string, Draft> {
  const entries = field.properties.map(({ name, field: of, isRequired }) => {
    const value: unknown = Object.hasOwn(given, name) ? Reflect.get(given, name) : undefined;
    const isKnown = value !== undefined || hasDefault(of) || of.kind === "const";
    const isLeftOut = !isKnown && !isRequired;
    return [name, isLeftOut ? NONE : draftOf(of, value)] as const;
  });
  return new Map(entries);
}

function placedList(field: Field & { kind: "list" }, given: unknown): Draft | undefined {
  if (!Array.isArray(given) || given.length > LIST_ITEMS) return undefined;
  return {
    kind: "list",
    items: given.map((value, id) => ({ id, draft: draftOf(field.item, value) })),
  };
}

function placedChoice(field: Field & { kind: "choice" }, given: unknown): Draft | undefined {
  const drafts = field.options.map((option) => placed(option, given));
  const index = drafts.findIndex((draft, at) => {
    const option = field.options[at];
    return draft !== undefined && option !== undefined && keepsConstants(option, given);
  });
  if (index === NOT_CHOSEN) return undefined;
  return { kind: "choice", index, drafts: drafts.map((it, at) => (at === index ? it : undefined)) };
}

/** Returns true if the value has the constants of an alternative, which tell alternatives apart. */
function keepsConstants(option: Field, given: unknown): boolean {
  if (option.kind !== "object") return true;
  return option.properties.every(({ name, field, isRequired }) => {
    const value: unknown = Object.hasOwn(Object(given), name)
      ? Reflect.get(Object(given), name)
      : undefined;
    if (value === undefined) return !isRequired;
    return field.kind !== "const" || isSame(field.value, value);
  });
}

/** Returns true if two JSON values have the same text. */
export function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Called with what cannot be read at a path. */
type Report = (path: string, problem: string) => void;

/** Returns the path of a property or an item, as a JSON pointer. */
export function pathOf(parent: string, name: string | number): string {
  return `${parent}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Returns the value of a draft, `undefined` if nothing is entered. Reports what is no value. */
export function readDraft(field: Field, draft: Draft, path: string, report: Report): unknown {
  if (draft.kind === "value") return draft.value;
  if (draft.kind === "written") {
    const read = field.kind === "number" ? numberIn : jsonIn;
    return read(draft.text, (problem) => report(path, problem));
  }
  if (draft.kind === "choice" && field.kind === "choice") {
    const [option, chosen] = [field.options[draft.index], draft.drafts[draft.index]];
    if (option === undefined) return undefined;
    return readDraft(option, chosen ?? draftOf(option), path, report);
  }
  if (draft.kind === "list" && field.kind === "list") {
    return draft.items.map((item, index) => {
      const at = pathOf(path, index);
      const value = readDraft(field.item, item.draft, at, report);
      if (value === undefined) report(at, TEXTS.missing);
      return value ?? null;
    });
  }
  if (draft.kind === "object" && field.kind === "object") {
    const values = field.properties.map(({ name, field: of }) => {
      const value = readDraft(of, draft.drafts.get(name) ?? NONE, pathOf(path, name), report);
      return [name, value] as const;
    });
    return Object.fromEntries(values.filter(([, value]) => value !== undefined));
  }
  return undefined;
}

const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

function numberIn(text: string, report: (problem: string) => void): unknown {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const value = Number(trimmed);
  if (!NUMBER.test(trimmed) || !Number.isFinite(value)) report(TEXTS.noNumber);
  // The browser would send another number.
  else if (Number.isInteger(value) && !Number.isSafeInteger(value)) report(TEXTS.tooPrecise);
  return value;
}

function jsonIn(text: string, report: (problem: string) => void): unknown {
  if (text.trim() === "") return undefined;
  const found = parsed(text);
  if ("value" in found) return found.value;
  report(found.problem);
  return null;
}
