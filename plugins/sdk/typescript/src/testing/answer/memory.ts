// Implements `memory` with the semantics of the host, except that a word is a sequence of letters and
// digits.

import type { Json } from "../../json.ts";
import { Item, type Namespace, type Search } from "../../memory.ts";
import { type Condition, conditionsOf, holds } from "../filter.ts";
import { current, type Kept, type State } from "../state.ts";

/** Matches any single part of a namespace. */
const ANY_PART = "*";

export function get(namespace: Namespace, key: string): Item | undefined {
  const state = current();
  const kept = state.memory.get(place(namespace, key));
  return kept !== undefined && isAlive(state, kept) ? read(state, kept) : undefined;
}

export function put(
  namespace: Namespace,
  key: string,
  value: Json,
  ttlMs: number | undefined,
): void {
  write(namespace, key, value, ttlMs, undefined);
}

export function putWhileRead(namespace: Namespace, key: string, value: Json, ttlMs: number): void {
  write(namespace, key, value, ttlMs, ttlMs);
}

function write(
  namespace: Namespace,
  key: string,
  value: Json,
  ttlMs: number | undefined,
  refreshMs: number | undefined,
): void {
  const state = current();
  const old = state.memory.get(place(namespace, key));
  const createdMs = old && isAlive(state, old) ? old.item.createdMs : state.nowMs;
  const item = new Item({
    namespace: [...namespace],
    key,
    value,
    createdMs,
    updatedMs: state.nowMs,
    score: undefined,
  });
  const expiresMs = ttlMs === undefined ? undefined : state.nowMs + ttlMs;
  state.memory.set(place(namespace, key), { item, expiresMs, refreshMs });
}

export function remove(namespace: Namespace, key: string): void {
  current().memory.delete(place(namespace, key));
}

export function search(search: Search): Item[] {
  const state = current();
  const conditions = search.filter === undefined ? [] : conditionsOf(search.filter);
  const found = [...state.memory.values()].filter((kept) => {
    return isAlive(state, kept) && fits(kept.item, search.prefix, conditions);
  });
  const items = found.map((kept) => read(state, kept));
  const ranked = search.query === undefined ? items : rank(items, wordsOf(search.query));
  ranked.sort((one, other) => {
    return (other.score ?? 0) - (one.score ?? 0) || other.updatedMs - one.updatedMs;
  });
  return ranked.slice(search.offset, search.offset + search.limit);
}

export function listNamespaces(
  prefix: Namespace,
  maxDepth: number | undefined,
  limit: number,
  offset: number,
): string[][] {
  const state = current();
  const alive = [...state.memory.values()].filter((kept) => isAlive(state, kept));
  const under = alive
    .map((kept) => kept.item.namespace)
    .filter((namespace) => {
      const isMeant = (part: string, at: number) => part === ANY_PART || part === namespace[at];
      return namespace.length >= prefix.length && prefix.every(isMeant);
    });
  const cut = under.map((namespace) => JSON.stringify(namespace.slice(0, maxDepth)));
  const found = [...new Set(cut)].map((text) => JSON.parse(text) as string[]);
  return found.sort(compare).slice(offset, offset + limit);
}

function place(namespace: Namespace, key: string): string {
  return JSON.stringify([namespace, key]);
}

function isAlive(state: State, kept: Kept): boolean {
  return kept.expiresMs === undefined || kept.expiresMs > state.nowMs;
}

/** Returns a document, and restarts its sliding expiry. */
function read(state: State, kept: Kept): Item {
  if (kept.refreshMs !== undefined) kept.expiresMs = state.nowMs + kept.refreshMs;
  return kept.item;
}

function fits(item: Item, prefix: readonly string[], conditions: readonly Condition[]): boolean {
  const isUnder = prefix.every((part, index) => item.namespace[index] === part);
  return isUnder && conditions.every((condition) => holds(condition, item.value));
}

/** Gives each document the fraction of the words that its key, field names or values contain. */
function rank(items: readonly Item[], wanted: ReadonlySet<string>): Item[] {
  return items.flatMap((item) => {
    const held = wordsOf(`${item.key} ${JSON.stringify(item.value)}`);
    const hits = [...wanted].filter((word) => held.has(word)).length;
    return hits === 0 ? [] : [new Item({ ...item, score: hits / wanted.size })];
  });
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

function compare(one: readonly string[], other: readonly string[]): number {
  for (let index = 0; index < Math.min(one.length, other.length); index++) {
    const [left, right] = [one[index] as string, other[index] as string];
    if (left !== right) return left < right ? -1 : 1;
  }
  return one.length - other.length;
}
