// Reads the list of threads.
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import type { Order, Page } from "../api/pages.ts";
import type { ThreadFilter } from "./filter.ts";

export type Thread = Schemas["ThreadSummary"];

/** Number of threads in a page. Two screens of rows are there before more are needed. */
const PAGE_SIZE = 100;

export const ORDER: Order<Thread> = {
  id: ({ thread_id }) => thread_id,
  time: ({ updated_ms }) => updated_ms,
};

/** Returns the page of threads at a cursor. */
export async function readThreads(
  { tenant, ...filter }: ThreadFilter,
  cursor: string | undefined,
): Promise<Page<Thread>> {
  const query = { ...filter, limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
  const { items, next_cursor } = await ok(
    api.GET("/api/v1/threads", { params: { query }, headers: tenantHeaders(tenant) }),
  );
  return { items, next: next_cursor ?? undefined, isFull: items.length >= PAGE_SIZE };
}
