// JSON that a user writes. A browser changes some numbers when it reads JSON, such as integers with
// more digits than it has, and would send other values than a user sees.
import { toError } from "../api/error.ts";
import { cut } from "./cut.ts";

/** Texts, which may contain digits, and numbers of a JSON document. */
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

const INTEGER = /^-?\d+$/;

/** Characters of a number that are shown. */
const SHOWN_CHARS = 40;

const TEXTS = {
  noJson: (reason: string) => `This is not JSON: ${reason}`,
  tooPrecise: (number: string) => `The number cannot be sent exactly: ${number}`,
};

/** Returns the document in a text, or the reason why there is none. */
export function parsed(text: string): { value: unknown } | { problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problem: TEXTS.noJson(toError(error).message) };
  }
  const changed = text.match(TEXT_OR_NUMBER)?.find(isChanged);
  if (changed === undefined) return { value };
  return { problem: TEXTS.tooPrecise(cut(changed, SHOWN_CHARS)) };
}

/** Returns true for a number that is too large, and for an integer that gets other digits. */
function isChanged(token: string): boolean {
  if (token.startsWith('"')) return false;
  const value = Number(token);
  if (!INTEGER.test(token)) return !Number.isFinite(value);
  return !Number.isSafeInteger(value) && String(value) !== token;
}
