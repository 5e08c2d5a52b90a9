// Lists that are limited to the size of a response.

import { write } from "../json.ts";
import { utf8Length } from "../utf8.ts";

/** A page of a list. */
export class Page<T> {
  /** The items in the order of the rows. */
  readonly items: T[];
  /** True if rows follow the page, also rows beyond the operator's limit on rows or size. */
  readonly hasMore: boolean;

  /** Creates a page. */
  constructor(items: T[], hasMore: boolean) {
    this.items = items;
    this.hasMore = hasMore;
  }

  /**
   * Returns the cursor of the next page, which `of` takes from the last item. Returns `undefined` for
   * the last page.
   */
  nextCursor<C>(of: (last: T) => C): C | undefined {
    return this.hasMore && this.items.length > 0 ? of(this.items.at(-1) as T) : undefined;
  }
}

/** A number of bytes that several lists of one response share. */
export interface Budget {
  /** Number of bytes that are left. */
  bytes: number;
}

/** The newest rows of a list. */
export interface Newest<T> {
  /** The rows in order, the newest last. */
  items: T[];
  /** True if older rows are left out, also by the operator's limit on rows or size. */
  truncated: boolean;
}

/** Returns the number of bytes of an item as JSON, with the comma after the item. */
export function bytesOf(item: unknown): number {
  return utf8Length(write("a row", item)) + 1;
}
