// SQL statements on granted databases, SQLite and PostgreSQL.

export {
  Database,
  type Dialect,
  database,
  Transaction,
  type TransactionHandle,
} from "./database.ts";
export { type Budget, type Newest, Page } from "./page.ts";
export { type Column, type Executed, Row, Rows } from "./rows.ts";
export { Inexact, JsonValue, json, Other, Real, real, type Value } from "./value.ts";
