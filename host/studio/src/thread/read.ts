// Reads the runs of a thread, newest first.
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import type { ThreadPlace } from "../api/log.ts";
import { type List, type Order, type Page, usePagedList } from "../api/pages.ts";

export type Run = Schemas["RunDocument"];

/** Number of runs in a page. Few threads have more. */
const PAGE_SIZE = 50;

export const ORDER: Order<Run> = {
  id: ({ run }) => run,
  time: ({ created_ms }) => created_ms ?? 0,
};

/** Reads the runs of a thread. */
export function useRunsOf({ thread, tenant }: ThreadPlace): List<Run> {
  return usePagedList(["runs", thread, tenant], ORDER, (cursor) =>
    readRuns({ thread, tenant }, cursor),
  );
}

/** Returns the page of runs at a cursor, which is the number of runs before it. */
async function readRuns(
  { thread, tenant }: ThreadPlace,
  cursor: string | undefined,
): Promise<Page<Run>> {
  const offset = Number(cursor ?? 0);
  const params = { path: { thread }, query: { limit: PAGE_SIZE, offset, order: "newest" } };
  const headers = tenantHeaders(tenant);
  const items = await ok(api.GET("/api/v1/threads/{thread}/runs", { params, headers }));
  // The host shortens a page only if its runs have more than 80 KiB each.
  const isFull = items.length >= PAGE_SIZE;
  return { items, next: isFull ? String(offset + items.length) : undefined, isFull };
}
