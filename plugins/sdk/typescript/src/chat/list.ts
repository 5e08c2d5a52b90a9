// Lists of conversations.

import { fieldsOf } from "../json.ts";
import { type ThreadSummary, threads } from "../runs/index.ts";
import type { Request } from "../web/request.ts";
import type { ThreadEntry, ThreadList } from "./documents.ts";

/** Field of the metadata of a thread with the title of the conversation. */
export const TITLE = "title";

/** Number of conversations in a page if the request has no limit. */
const DEFAULT_LIMIT = 50;

/** Maximum number of conversations in a page. */
const MAX_LIMIT = 200;

/** The greatest limit of the other SDKs, whose numbers have 32 bits. */
const MOST = 2 ** 32 - 1;

/** Returns the page of the conversations of a graph that a request asks for. */
export function pageOf(graph: string, request: Request<unknown>): ThreadList {
  const asked = request.number("limit", 0, MOST) ?? DEFAULT_LIMIT;
  const limit = Math.max(Math.min(asked, MAX_LIMIT), 1);
  const [after, text] = [request.query("after"), request.query("text")];
  const page = threads({ graph, limit, after, text });
  return { threads: page.threads.map(entryOf), next: page.next ?? null };
}

function entryOf(thread: ThreadSummary): ThreadEntry {
  const { threadId, status, createdMs, updatedMs } = thread;
  const title = fieldsOf(thread.metadata)[TITLE];
  return {
    threadId,
    title: typeof title === "string" ? title : null,
    status,
    createdMs,
    updatedMs,
  };
}
