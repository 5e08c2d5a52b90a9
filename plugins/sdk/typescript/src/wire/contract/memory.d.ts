// `wit/wattle/memory.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/memory@0.1.0" {
  import type { Extra, Integer, Json, Option } from "wattle:plugin/types@0.1.0";

  export interface Item {
    namespace: string[];
    key: string;
    value: Json;
    createdMs: Integer;
    updatedMs: Integer;
    score?: Option<number>;
  }

  export interface SearchRequest {
    prefix: string[];
    filter: Option<Json>;
    query: Option<string>;
    limit: number;
    offset: number;
    extra: Extra;
  }

  export function get(namespace: string[], key: string): Option<Item>;
  export function put(namespace: string[], key: string, value: Json, ttlMs: Option<Integer>): void;
  export function putWith(
    namespace: string[],
    key: string,
    value: Json,
    ttlMs: Option<Integer>,
    extra: Extra,
  ): void;
  function remove(namespace: string[], key: string): void;

  export { remove as delete };
  export function search(request: SearchRequest): Item[];
  export function listNamespaces(
    prefix: string[],
    maxDepth: Option<number>,
    limit: number,
    offset: number,
  ): string[][];
}
