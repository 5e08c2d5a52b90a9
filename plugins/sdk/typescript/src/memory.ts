// Long-term memory across threads: JSON documents, each with a namespace and a key.

import type { output } from "zod/v4/core";
import * as host from "#host/memory";
import { type Extra, fromValue, type Json, type Type, toValue } from "./json.ts";

/** A path such as `["users", "42"]`; no part is empty. */
export type Namespace = readonly string[];

/** Default maximum number of results. */
const DEFAULT_LIMIT = 20;

/** The fields of an {@link Item}. */
export interface ItemFields {
  /** Namespace, such as `["users", "42"]`. */
  namespace: string[];
  /** Key of the document, unique in the namespace. */
  key: string;
  /** Value of the document. */
  value: Json;
  /** Time of the first write, in milliseconds since 1970. */
  createdMs: number;
  /** Time of the last write, in milliseconds since 1970. */
  updatedMs: number;
  /** Fraction of the query words that the document contains, from 0 to 1; `undefined` without a query. */
  score: number | undefined;
}

/** A document. */
export class Item implements ItemFields {
  readonly namespace: string[];
  readonly key: string;
  readonly value: Json;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly score: number | undefined;

  /** Creates a document, for tests. */
  constructor(fields: ItemFields) {
    this.namespace = fields.namespace;
    this.key = fields.key;
    this.value = fields.value;
    this.createdMs = fields.createdMs;
    this.updatedMs = fields.updatedMs;
    this.score = fields.score;
  }

  /**
   * Returns the value as a type.
   *
   * @throws `invalid` if the value does not fit the type.
   */
  valueAs<T extends Type>(type: T): output<T> {
    return fromValue(`the document \`${this.key}\``, this.value, type);
  }
}

/**
 * Reads a document. Returns `undefined` if it does not exist or has expired.
 *
 * A plugin can access the granted namespaces of the tenant for which it runs. Reads are journaled, so
 * a node that is executed again reads the same documents. Writes are idempotent.
 *
 * ```ts
 * import { memory } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * new FakeHost().run(() => {
 *   memory.put(["users", "42"], "language", "de");
 *   assert.equal(memory.get(["users", "42"], "language")?.value, "de");
 *   assert.equal(memory.search(["users"], { limit: 10 }).length, 1);
 *   memory.delete(["users", "42"], "language");
 * });
 * ```
 */
export function get(namespace: Namespace, key: string): Item | undefined {
  return host.get(namespace, key);
}

/** Writes a document without expiry. Replaces an existing document. */
export function put(namespace: Namespace, key: string, value: unknown): void {
  host.put(namespace, key, document(key, value), undefined);
}

/** Writes a document that expires after `ttlMs` milliseconds. */
export function putFor(namespace: Namespace, key: string, value: unknown, ttlMs: number): void {
  host.put(namespace, key, document(key, value), ttlMs);
}

/**
 * Writes a document with a sliding expiry: it expires `ttlMs` milliseconds after the last read or
 * search that returned it.
 *
 * ```ts
 * import { memory } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost();
 * host.run(() => {
 *   memory.putWhileRead(["users", "42"], "cart", "tea", 60_000);
 *   for (const _ of [1, 2, 3]) {
 *     host.advanceMs(50_000);
 *     assert.ok(memory.get(["users", "42"], "cart"));
 *   }
 *   host.advanceMs(60_000);
 *   assert.equal(memory.get(["users", "42"], "cart"), undefined);
 * });
 * ```
 */
export function putWhileRead(
  namespace: Namespace,
  key: string,
  value: unknown,
  ttlMs: number,
): void {
  host.putWhileRead(namespace, key, document(key, value), ttlMs);
}

/** Deletes a document. Succeeds even if the document does not exist. */
function remove(namespace: Namespace, key: string): void {
  host.remove(namespace, key);
}

export { remove as delete };

/** What to look for, besides the prefix of the namespaces. */
export interface SearchOptions {
  /**
   * JSON object that maps each field to a value, or to operators and values such as `{ $gt: value }`.
   * The operators are `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`. All conditions must hold. A
   * missing field is treated as `null`.
   */
  filter?: Extra;
  /**
   * Words by which documents are ranked. Documents with more of the words come first, and documents
   * without any are not results. Without a query, the most recently written documents come first.
   */
  query?: string;
  /** Maximum number of documents to return; 20 by default. */
  limit?: number;
  /** Number of documents to skip. */
  offset?: number;
  /** Extension fields. */
  extra?: Extra;
}

/**
 * Searches for documents under a prefix of namespaces.
 *
 * ```ts
 * import { memory } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * new FakeHost().run(() => {
 *   memory.put(["facts"], "tea", { text: "She likes green tea", sure: 0.9 });
 *   memory.put(["facts"], "dog", { text: "She has a dog", sure: 0.2 });
 *   const sure = memory.search(["facts"], { filter: { sure: { $gte: 0.5 } } });
 *   assert.equal(sure[0]?.key, "tea");
 *   const found = memory.search(["facts"], { query: "green tea" });
 *   assert.equal(found[0]?.score, 1);
 * });
 * ```
 *
 * @throws `invalid` if the filter has an unknown operator.
 */
export function search(prefix: Namespace, options: SearchOptions = {}): Item[] {
  const { filter, query, limit = DEFAULT_LIMIT, offset = 0, extra = {} } = options;
  return host.search({ prefix: [...prefix], filter, query, limit, offset, extra });
}

/** A search as the host gets it. */
export interface Search {
  /** Prefix of the namespaces to search. */
  prefix: string[];
  /** See {@link SearchOptions.filter}. */
  filter: Extra | undefined;
  /** See {@link SearchOptions.query}. */
  query: string | undefined;
  /** Maximum number of documents to return. */
  limit: number;
  /** Number of documents to skip. */
  offset: number;
  /** Extension fields. */
  extra: Extra;
}

/** Which namespaces to list. */
export interface ListOptions {
  /** Namespaces longer than this are truncated. */
  maxDepth?: number;
  /** Maximum number of namespaces to return; 20 by default. */
  limit?: number;
  /** Number of namespaces to skip. */
  offset?: number;
}

/**
 * Lists the namespaces under a prefix that contain documents, sorted by name. A `*` in the prefix
 * matches any single part.
 */
export function listNamespaces(prefix: Namespace, options: ListOptions = {}): string[][] {
  const { maxDepth, limit = DEFAULT_LIMIT, offset = 0 } = options;
  return host.listNamespaces(prefix, maxDepth, limit, offset);
}

function document(key: string, value: unknown): Json {
  return toValue(`the document \`${key}\``, value);
}
