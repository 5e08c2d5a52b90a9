// Prompts from template files.

import { Failure } from "./failure.ts";

/** Start of a placeholder. */
const OPEN = "{{";

/** End of a placeholder. */
const CLOSE = "}}";

/**
 * Replaces each placeholder of a template with its value. Placeholders are names in double braces.
 *
 * A prompt in a separate file is easier to read and to review: `import EXTRACT from
 * "./extract.md?raw"` compiles the file into the component.
 *
 * Whitespace around the name of a placeholder and at the end of the template is ignored. A placeholder
 * may occur several times. Values are inserted unchanged and are not searched for placeholders, so
 * they can be untrusted.
 *
 * ```ts
 * import { prompt } from "wattle-plugin";
 *
 * const EXTRACT = "List the trades in the text. Today is {{today}}.\n";
 *
 * const system = prompt.fill(EXTRACT, { today: "2025-01-15" });
 * assert.equal(system, "List the trades in the text. Today is 2025-01-15.");
 * // Template and code must fit each other.
 * assert.throws(() => prompt.fill(EXTRACT, {}), { code: "internal" });
 * ```
 *
 * @throws `internal` if the template and the code do not match: a placeholder has no value, a value
 * has no placeholder, or a placeholder is not closed.
 */
export function fill(template: string, values: Readonly<Record<string, string>>): string {
  const unused = new Set(Object.keys(values));
  let filled = "";
  let rest = template.trimEnd();
  for (let open = rest.indexOf(OPEN); open >= 0; open = rest.indexOf(OPEN)) {
    const close = rest.indexOf(CLOSE, open + OPEN.length);
    if (close < 0) throw unfit("`{{` is not closed");
    const name = rest.slice(open + OPEN.length, close).trim();
    if (!Object.hasOwn(values, name)) throw unfit(`placeholder \`${name}\` has no value`);
    filled += rest.slice(0, open) + values[name];
    unused.delete(name);
    rest = rest.slice(close + CLOSE.length);
  }
  for (const name of unused) throw unfit(`value \`${name}\` has no placeholder`);
  return filled + rest;
}

function unfit(why: string): Failure {
  return Failure.internal(`the prompt cannot be filled: ${why}`);
}
