// Redaction: replaces what looks like a secret in documents and texts that people read later.

import { type Extra, type Json, toValue } from "./json.ts";
import { WHITESPACE } from "./whitespace.ts";

/** Text in place of a secret. */
const REDACTED = "[redacted]";

/** Parts of the names of fields whose values are redacted. */
const FIELDS = ["api_key", "apikey", "authorization", "password", "secret", "token"];

/** Parts of the names of token counts, whose numbers are not secrets. */
const COUNTS = ["tokens", "token_count"];

/** Prefixes of keys of well-known services. */
const PREFIXES = ["sk-", "sk_", "AIza", "ghp_", "xoxb-"];

/** Minimum length of a key. */
const SHORTEST = 8;

/** Values that are not secrets. */
const PLAIN = ["", "null", "true", "false", REDACTED];

const WORD = /[A-Za-z0-9\-_.~+/=]*/y;
const GAP = /[^A-Za-z0-9\-_.~+/=]*/y;
const SPACE = new RegExp(`[${WHITESPACE}]*`, "y");
const ONLY_SPACE = new RegExp(`^[${WHITESPACE}]*$`);
const BARE_VALUE = new RegExp(`[^${WHITESPACE}&;,"'<>()[\\]{}]*`, "y");
const DIGITS = /^[0-9]*$/;

/** A part of a text: its start, and its end, which is not part of it. */
type Range = readonly [start: number, end: number];

/** The additions of an application to the lists of a {@link Redaction}. */
export interface RedactionOptions {
  /**
   * Parts of the names of fields whose values are redacted. Names are compared in lower case and with
   * `_` for `-`.
   */
  fields?: readonly string[];
  /** Parts of the names of fields that are not secrets, even if the name has a part of a secret. */
  harmless?: readonly string[];
  /**
   * Prefixes of keys. A key consists of ASCII letters, digits and the characters `-_.~+/=`, and has at
   * least 8 characters.
   */
  prefixes?: readonly string[];
}

/**
 * Lists of what looks like a secret: the default lists, and the additions of an application.
 *
 * | list | default |
 * |---|---|
 * | fields | `api_key`, `apikey`, `authorization`, `password`, `secret`, `token` |
 * | harmless fields | none; numbers in `tokens` and `token_count` are kept |
 * | prefixes of keys | `sk-`, `sk_`, `AIza`, `ghp_`, `xoxb-` |
 *
 * ```ts
 * import { redact } from "wattle-plugin";
 *
 * const redaction = new redact.Redaction({ fields: ["phone"], harmless: ["phone_type"] });
 * const shown = redaction.value({ home_phone: "555-0100", phone_type: "home" });
 * assert.deepEqual(shown, { home_phone: "[redacted]", phone_type: "home" });
 * ```
 */
export class Redaction {
  readonly #fields: string[];
  readonly #harmless: string[];
  readonly #prefixes: string[];

  /** Creates a redaction with the default lists and additions. */
  constructor({ fields = [], harmless = [], prefixes = [] }: RedactionOptions = {}) {
    this.#fields = [...FIELDS, ...fields.map(normal)];
    this.#harmless = harmless.map(normal);
    this.#prefixes = [...PREFIXES, ...prefixes];
  }

  /**
   * Redacts the values of fields with the name of a secret, of any type except null and boolean, and
   * all texts of the document as {@link Redaction.text} does. Of a field with the name of a token
   * count, only the texts are redacted. Returns another document.
   *
   * @throws `internal` if the document contains what JSON cannot have.
   */
  value(document: unknown): Json {
    return this.#json(toValue("the document", document));
  }

  /**
   * Redacts what looks like a secret in a text:
   *
   * * keys: words with the prefix of a key at the start or after `=` or `/`,
   * * credentials: words after `Bearer`, and after `Authorization: Basic`,
   * * values of fields with the name of a secret, as in `password=...` and in JSON.
   */
  text(text: string): string {
    let kept = "";
    // The two words before, and what separates them from the next one.
    let [before, previous, gap] = ["", "", ""];
    let at = 0;
    while (at < text.length) {
      const word = match(WORD, text, at);
      if (word === "") {
        gap = match(GAP, text, at);
        kept += gap;
        at += gap.length;
        continue;
      }
      const end = at + word.length;
      // `authorization=Bearer` is one word.
      const split = previous.lastIndexOf("=");
      const field = split < 0 ? before : previous.slice(0, split);
      const scheme = previous.slice(split + 1).toLowerCase();
      const isCredential =
        word.length >= SHORTEST &&
        ONLY_SPACE.test(gap) &&
        (scheme === "bearer" ||
          (scheme === "basic" && field.toLowerCase().endsWith("authorization")));
      const secret: Range | undefined = isCredential ? [at, end] : this.#secret(text, at, word);
      kept += secret === undefined ? word : text.slice(at, secret[0]) + REDACTED;
      at = secret === undefined ? end : secret[1];
      [before, previous, gap] = [previous, word, ""];
    }
    return kept;
  }

  #json(document: Json): Json {
    if (typeof document === "string") return this.text(document);
    if (document === null || typeof document !== "object") return document;
    if (Array.isArray(document)) return document.map((item) => this.#json(item));
    return mapped(document, (name, value) => this.#field(name, value));
  }

  #field(name: string, value: Json): Json {
    if (value === null || typeof value === "boolean") return value;
    if (!this.#isSecret(name)) return this.#json(value);
    return isCount(name) ? withoutTexts(value) : REDACTED;
  }

  /** Returns the secret that the word at a position contains or names. */
  #secret(text: string, at: number, word: string): Range | undefined {
    const end = at + word.length;
    return this.#assigned(text, at, word) ?? this.#inJson(text, end, word) ?? this.#key(at, word);
  }

  /** Returns the value after a `=` within a word whose name is that of a secret. */
  #assigned(text: string, at: number, word: string): Range | undefined {
    let name = 0;
    for (let index = 0; index < word.length; index += 1) {
      if (word[index] === "=") {
        const value = this.#secretValue(word.slice(name, index), text, at + index + 1);
        if (value !== undefined) return value;
      }
      if (word[index] === "=" || word[index] === "/") name = index + 1;
    }
    return undefined;
  }

  /** Returns the value of a JSON field whose name is the word that ends at `end`. */
  #inJson(text: string, end: number, name: string): Range | undefined {
    const start = valueInJson(text, end);
    return start === undefined ? undefined : this.#secretValue(name, text, start);
  }

  /** Returns the key that begins with a word, or after `=` or `/` within it. */
  #key(at: number, word: string): Range | undefined {
    for (let start = 0; word.length - start >= SHORTEST; start += 1) {
      const isStart = start === 0 || word[start - 1] === "=" || word[start - 1] === "/";
      if (isStart && this.#prefixes.some((prefix) => word.startsWith(prefix, start))) {
        return [at + start, at + word.length];
      }
    }
    return undefined;
  }

  /** Returns the value at a position, without its quotes, if the name is that of a secret. */
  #secretValue(name: string, text: string, at: number): Range | undefined {
    if (!this.#isSecret(name)) return undefined;
    const quote = quoteAt(text, at);
    const start = at + quote.length;
    const end = endOfValue(text, start, quote);
    const value = text.slice(start, end);
    const isPlain = PLAIN.includes(value) || (isCount(name) && DIGITS.test(value));
    return isPlain ? undefined : [start, end];
  }

  #isSecret(name: string): boolean {
    const compared = normal(name);
    const has = (parts: readonly string[]) => parts.some((part) => compared.includes(part));
    return has(this.#fields) && !has(this.#harmless);
  }
}

/**
 * Redacts a document with the default lists of names and prefixes, as {@link Redaction.value} does.
 *
 * Services repeat keys in their error messages, and documents have fields such as `api_key`. A plugin
 * that stores requests, outputs or failures redacts them first. Redaction recognizes names and forms
 * only. The host itself keeps the secrets of the operator away from guests.
 *
 * ```ts
 * import { redact } from "wattle-plugin";
 *
 * const output = { api_key: 4711, error: "Incorrect API key: sk-abc123456" };
 * const shown = { api_key: "[redacted]", error: "Incorrect API key: [redacted]" };
 * assert.deepEqual(redact.value(output), shown);
 * ```
 *
 * @throws `internal` if the document contains what JSON cannot have.
 */
export function value(document: unknown): Json {
  return new Redaction().value(document);
}

/**
 * Redacts a text with the default lists of names and prefixes, as {@link Redaction.text} does.
 *
 * ```ts
 * import { redact } from "wattle-plugin";
 *
 * const shown = redact.text("Bearer abc.def-123 is not valid");
 * assert.equal(shown, "Bearer [redacted] is not valid");
 * ```
 */
export function text(text: string): string {
  return new Redaction().text(text);
}

/** Returns what an expression with the flag `y` matches at a position. */
function match(expression: RegExp, text: string, at: number): string {
  expression.lastIndex = at;
  return expression.exec(text)?.[0] ?? "";
}

/** Returns the start of the value of a JSON field whose name ends at `end`. */
function valueInJson(text: string, end: number): number | undefined {
  const quote = quoteAt(text, end);
  if (quote === "") return undefined;
  const colon = afterSpace(text, end + quote.length);
  return text[colon] === ":" ? afterSpace(text, colon + 1) : undefined;
}

function afterSpace(text: string, at: number): number {
  return at + match(SPACE, text, at).length;
}

/** Returns the quote at a position, with the backslashes that it has in JSON within JSON. */
function quoteAt(text: string, at: number): string {
  let end = at;
  while (text[end] === "\\") end += 1;
  const isQuote = text[end] === '"' || (end === at && text[end] === "'");
  return isQuote ? text.slice(at, end + 1) : "";
}

/** Returns the end of a value after its opening quote, which is empty for a bare value. */
function endOfValue(text: string, start: number, quote: string): number {
  if (quote === "") return start + match(BARE_VALUE, text, start).length;
  // Each level of JSON doubles the backslashes of the level within it, and adds one to a quote. A
  // closing quote has as many as the opening one. Backslashes at the end of the value add a multiple
  // of twice the length of the quote. Any other number is that of a quote in the value.
  let backslashes = 0;
  for (let at = start; at < text.length; at += 1) {
    const isClosing = backslashes % (2 * quote.length) === quote.length - 1;
    if (text[at] === quote.at(-1) && isClosing) return at - (quote.length - 1);
    backslashes = text[at] === "\\" ? backslashes + 1 : 0;
  }
  return text.length;
}

/** Returns true if a field has the name of a token count. */
function isCount(name: string): boolean {
  const compared = normal(name);
  return COUNTS.some((part) => compared.includes(part));
}

/** Redacts the texts of a document, and keeps its numbers. */
function withoutTexts(document: Json): Json {
  if (typeof document === "string") return REDACTED;
  if (document === null || typeof document !== "object") return document;
  if (Array.isArray(document)) return document.map(withoutTexts);
  return mapped(document, (_, value) => withoutTexts(value));
}

/** Returns an object with other values. */
function mapped(fields: Extra, map: (name: string, value: Json) => Json): Extra {
  const entries = Object.entries(fields).map(([name, value]) => [name, map(name, value)] as const);
  return Object.fromEntries(entries);
}

/** Returns the name of a field in the form in which names are compared. */
function normal(name: string): string {
  return name.toLowerCase().replaceAll("-", "_");
}
