// Table projections: tables of an application that follow the event log of a thread.

export * as calls from "./calls.ts";
export { Cursor, type CursorNames, type Projection } from "./cursor.ts";
