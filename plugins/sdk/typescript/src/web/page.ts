// Pages of lists.

/**
 * Budget for the items of a list in a response, in bytes of JSON. The whole response has at most 4 MiB,
 * unless the operator grants more, so 256 KiB remain for its other fields.
 */
export const PAGE_BYTES: number = 4 * 2 ** 20 - 256 * 2 ** 10;

/** The page of a list that a request asks for, by the query parameters `limit` and `offset`. */
export interface PageQuery {
  /** Maximum number of items. */
  limit: number;
  /** Number of items before the page. */
  offset: number;
}
