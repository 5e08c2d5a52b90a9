// Which rows of a timeline are closed, as the value of a search parameter: `3.12` are these rows, and
// `all.3.12` all but these.
import type { Check } from "../router/search.ts";
import { idOf, numberOf } from "./places.ts";

/** Value for all rows, and what is between the parts of a value. */
const ALL = "all";
const BETWEEN = ".";

/** Rows in a value. Of more, those that were closed or opened last are in it. */
const MOST = 100;

const VALUE = /^(?:all|[0-9]{1,9})(?:\.[0-9]{1,9})*$/;

/** Accepts the closed rows of a timeline. */
export const closedRows: Check = (text) =>
  VALUE.test(text) && text.split(BETWEEN).length <= MOST + 1 ? text : undefined;

/** The closed rows of a timeline. They are those with the ids in `except`, or all others. */
export class ClosedRows {
  static readonly NONE = new ClosedRows(false, []);
  static readonly ALL = new ClosedRows(true, []);
  readonly #isAll: boolean;
  readonly #except: ReadonlySet<string>;

  private constructor(isAll: boolean, except: readonly string[]) {
    this.#isAll = isAll;
    this.#except = new Set(except.slice(-MOST));
  }

  /** Returns the rows of a valid value. */
  static of(text: string | undefined): ClosedRows {
    if (text === undefined) return ClosedRows.NONE;
    const parts = text.split(BETWEEN);
    const isAll = parts[0] === ALL;
    return new ClosedRows(isAll, parts.slice(isAll ? 1 : 0).map(idOf));
  }

  /** Returns true if the rows below the row with this id are left out. */
  has(id: string): boolean {
    return this.#except.has(id) !== this.#isAll;
  }

  /** Returns the rows with one more that is closed, or open if it was closed. */
  toggled(id: string): ClosedRows {
    const others = [...this.#except].filter((it) => it !== id);
    return new ClosedRows(this.#isAll, this.#except.has(id) ? others : [...others, id]);
  }

  /** Returns the value; `undefined` if all rows are open. */
  get text(): string | undefined {
    const parts = [...(this.#isAll ? [ALL] : []), ...[...this.#except].map(numberOf)];
    return parts.length === 0 ? undefined : parts.join(BETWEEN);
  }
}
