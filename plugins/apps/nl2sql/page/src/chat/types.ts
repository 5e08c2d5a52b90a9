// The documents of the app's endpoints, and the names of what they contain.
import type { MessageList, ResultReturnResult } from "../schema.d.ts";

export type * from "../schema.d.ts";

export type Row = Record<string, unknown>;

/** The answer to a question. */
export type Result = ResultReturnResult;

/** The messages of a session, of one page or of all. */
export type Messages = Pick<MessageList, "messages" | "total" | "pending">;
