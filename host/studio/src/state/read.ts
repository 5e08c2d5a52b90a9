// The checkpoints of a thread: the state after each superstep, input, edit and fork.
import { tenantHeaders } from "../access/key.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import type { ThreadPlace } from "../api/log.ts";
import type { Order, Page } from "../api/pages.ts";

export type Checkpoint = Schemas["CheckpointDocument"];

/** A graph of a thread. The namespace of the root graph is empty. */
export interface GraphPlace extends ThreadPlace {
  readonly namespace: string;
}

/** Number of checkpoints in a page. */
const PAGE_SIZE = 50;

/** Newest first. The number of a checkpoint is larger than those of the checkpoints before it. */
export const NEWEST: Order<Checkpoint> = { id: ({ id }) => String(id), time: ({ id }) => id };

/** Returns a checkpoint with its state. `checkpoint` is its number, or `latest`. */
export function readCheckpoint(
  { thread, tenant, namespace }: GraphPlace,
  checkpoint: string,
  signal: AbortSignal,
): Promise<Checkpoint> {
  const params = { path: { thread, checkpoint }, query: { namespace } };
  const headers = tenantHeaders(tenant);
  const path = "/api/v1/threads/{thread}/checkpoints/{checkpoint}";
  return ok(api.GET(path, { params, headers, signal }));
}

/**
 * Returns a page of checkpoints without their states: those of a run, or all. The cursor is the
 * number of the last one before the page.
 */
export async function readHistory(
  { thread, tenant, namespace }: GraphPlace,
  run: string | undefined,
  cursor: string | undefined,
): Promise<Page<Checkpoint>> {
  const query = {
    namespace,
    limit: PAGE_SIZE,
    ...(cursor === undefined ? {} : { before: Number(cursor) }),
    ...(run === undefined ? {} : { filter: JSON.stringify({ run }) }),
  };
  const params = { path: { thread }, query };
  const headers = tenantHeaders(tenant);
  const items = await ok(api.GET("/api/v1/threads/{thread}/history", { params, headers }));
  // Only an empty page is the last one.
  return { items, next: items.at(-1)?.id.toString(), isFull: items.length >= PAGE_SIZE };
}
