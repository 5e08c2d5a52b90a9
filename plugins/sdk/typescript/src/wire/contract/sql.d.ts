// `wit/wattle/sql.wit` as engines show it to JavaScript. See `types.d.ts` for names and values.

declare module "wattle:plugin/sql@0.1.0" {
  import type { Integer, Json } from "wattle:plugin/types@0.1.0";

  export type Value =
    | { tag: "null" }
    | { tag: "boolean"; val: boolean }
    | { tag: "integer"; val: Integer }
    | { tag: "real"; val: number }
    | { tag: "text"; val: string }
    | { tag: "bytes"; val: Uint8Array }
    | { tag: "json"; val: Json }
    | { tag: "other"; val: string };

  export interface Rows {
    columns: Array<{ name: string; typeName: string }>;
    rows: Value[][];
    truncated: boolean;
  }

  export interface Executed {
    rowsAffected: Integer;
    returned: Rows;
  }

  export interface Transaction {
    query(statement: string, parameters: Value[]): Rows;
    execute(statement: string, parameters: Value[]): Executed;
    commit(): void;
    rollback(): void;
  }

  export function query(database: string, statement: string, parameters: Value[]): Rows;
  export function execute(database: string, statement: string, parameters: Value[]): Executed;
  export function begin(database: string): Transaction;
  export function dialect(database: string): string;
}
