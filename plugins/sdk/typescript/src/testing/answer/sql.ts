// Implements `sql` with the script.

import type { Executed, Rows, TransactionHandle, Value } from "../../sql/index.ts";
import { current, play } from "../state.ts";

export function query(database: string, text: string, parameters: Value[]): Rows {
  return ask(database, text, parameters, false).returned;
}

export function execute(database: string, text: string, parameters: Value[]): Executed {
  return ask(database, text, parameters, false);
}

export function dialect(_database: string): string {
  return current().dialect;
}

export function begin(database: string): TransactionHandle {
  const note = (text: string) => {
    current().notes.statements.push({ database, text, parameters: [], inTransaction: true });
  };
  note("BEGIN");
  return {
    query: (text, parameters) => ask(database, text, parameters, true).returned,
    execute: (text, parameters) => ask(database, text, parameters, true),
    commit: () => note("COMMIT"),
    rollback: () => note("ROLLBACK"),
  };
}

function ask(
  database: string,
  text: string,
  parameters: Value[],
  inTransaction: boolean,
): Executed {
  const state = current();
  const statement = { database, text, parameters, inTransaction };
  state.notes.statements.push(statement);
  return play(state.sql, statement, "FakeHost.sql");
}
