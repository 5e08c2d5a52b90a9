// Calls of `memory`.

import * as raw from "wattle:plugin/memory@0.1.0";
import type { Json } from "../json.ts";
import { Item, type Namespace, type Search } from "../memory.ts";
import { call, option, rawExtra, rawOption, same, text, value } from "./convert.ts";

export function get(namespace: Namespace, key: string): Item | undefined {
  return option(
    call(() => raw.get([...namespace], key)),
    item,
  );
}

export function put(
  namespace: Namespace,
  key: string,
  value: Json,
  ttlMs: number | undefined,
): void {
  call(() => raw.put([...namespace], key, text(value), rawOption(ttlMs, same)));
}

export function putWhileRead(namespace: Namespace, key: string, value: Json, ttlMs: number): void {
  const extra = rawExtra({ refresh_on_read: true });
  call(() => raw.putWith([...namespace], key, text(value), ttlMs, extra));
}

export function remove(namespace: Namespace, key: string): void {
  call(() => raw.delete([...namespace], key));
}

export function search(search: Search): Item[] {
  const found = call(() =>
    raw.search({
      prefix: search.prefix,
      filter: rawOption(search.filter, text),
      query: rawOption(search.query, same),
      limit: search.limit,
      offset: search.offset,
      extra: rawExtra(search.extra),
    }),
  );
  return found.map(item);
}

export function listNamespaces(
  prefix: Namespace,
  maxDepth: number | undefined,
  limit: number,
  offset: number,
): string[][] {
  return call(() => raw.listNamespaces([...prefix], rawOption(maxDepth, same), limit, offset));
}

function item(item: raw.Item): Item {
  return new Item({
    namespace: item.namespace,
    key: item.key,
    value: value(item.value),
    createdMs: Number(item.createdMs),
    updatedMs: Number(item.updatedMs),
    score: option(item.score, same),
  });
}
