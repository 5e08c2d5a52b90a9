// The items of the inbox.
import type { Schemas } from "../api/client.ts";

/** A pending interrupt with its thread. */
export type InboxItem = Schemas["PendingInterruptDocument"];
