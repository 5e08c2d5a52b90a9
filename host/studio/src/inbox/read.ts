// Reads and answers interrupts.
import { tenantHeaders } from "../access/key.ts";
import type { Access } from "../access/scope.ts";
import { tenantOfList } from "../access/tenant.ts";
import { answerAmong, type GivenAnswer } from "../api/answer.ts";
import { api, ok, type Schemas } from "../api/client.ts";
import { given } from "../api/given.ts";
import { readOutlines } from "../api/log.ts";
import { orMissing } from "../api/missing.ts";
import type { Order, Page } from "../api/pages.ts";
import { readThread } from "../api/thread.ts";
import { type Conditions, keyOf } from "./filter.ts";
import type { InboxItem } from "./item.ts";

/** Number of threads whose interrupts are in a page, the most that the host permits. */
const PAGE_SIZE = 50;

/** Runs of a thread in which an answer is searched, newest first. Each is a request. */
const SEARCHED_RUNS = 10;

export type Count = Schemas["InterruptCountsDocument"];

/** What of the access of a key decides whose questions are read. */
export type ListAccess = Pick<Access, "is_operator" | "tenant_header">;

export const ORDER: Order<InboxItem> = { id: keyOf, time: ({ updated_ms }) => updated_ms };

/** Returns the page of interrupts at a cursor. */
export async function readInbox(
  conditions: Conditions,
  access: ListAccess,
  cursor: string | undefined,
): Promise<Page<InboxItem>> {
  const query = { limit: PAGE_SIZE, ...queryOf(conditions, access), ...given({ cursor }) };
  const params = { query };
  const { items, next_cursor } = await ok(api.GET("/api/v1/interrupts", { params }));
  return { items, next: next_cursor ?? undefined, isFull: items.length >= PAGE_SIZE };
}

/** Returns how many interrupts are pending. */
export function readCount(conditions: Conditions, access: ListAccess): Promise<Count> {
  return ok(
    api.GET("/api/v1/interrupt-counts", { params: { query: queryOf(conditions, access) } }),
  );
}

/** Returns conditions as the API names them. An operator who names no tenant sees all tenants. */
function queryOf({ app, graph, tenant }: Conditions, access: ListAccess) {
  return given({ app, graph, tenant: tenantOfList(tenant, access) });
}

/** A pending interrupt that a link names. */
export interface Place {
  thread: string;
  interrupt: string;
  tenant: string | undefined;
}

/** Returns a pending interrupt; `undefined` if it is not pending any more. */
export async function readItem({
  thread,
  interrupt,
  tenant,
}: Place): Promise<InboxItem | undefined> {
  const found = await orMissing(readThread({ thread, tenant }));
  const pending = found?.interrupts.find(({ id }) => id === interrupt);
  if (found === undefined || pending === undefined) return undefined;
  const { thread_id, app, graph, updated_ms } = found;
  const item = { thread, thread_id, app, graph, updated_ms, interrupt: pending };
  return tenant === undefined ? item : { ...item, tenant };
}

/** Answers an interrupt. The run continues in the background. */
export function sendAnswer(item: InboxItem, answer: unknown): Promise<unknown> {
  const { thread_id, tenant, interrupt } = item;
  return ok(
    api.POST("/api/v1/threads/{thread}/resume", {
      params: { path: { thread: thread_id } },
      headers: tenantHeaders(tenant),
      body: { answers: { [interrupt.id]: answer } },
    }),
  );
}

/** Who answered an interrupt, as far as it can be found. */
export type Outcome =
  | { kind: "answered"; given: GivenAnswer }
  | { kind: "gone" }
  | { kind: "unknown" };

/** Finds the answer to an interrupt in the newest runs of its thread. */
export async function readOutcome({ thread, interrupt, tenant }: Place): Promise<Outcome> {
  const headers = tenantHeaders(tenant);
  const query = { order: "newest", limit: SEARCHED_RUNS };
  const params = { path: { thread }, query };
  const runs = await orMissing(ok(api.GET("/api/v1/threads/{thread}/runs", { params, headers })));
  if (runs === undefined) return { kind: "gone" };
  for (const { run } of runs) {
    const found = await answerIn({ thread, interrupt, tenant }, run);
    if (found !== undefined) return { kind: "answered", given: found };
  }
  return { kind: "unknown" };
}

async function answerIn(place: Place, run: string): Promise<GivenAnswer | undefined> {
  // A run begins with the answers that it continues with, so its first page has them.
  const page = await orMissing(readOutlines(place, 0, { run, type: "answered" }));
  return answerAmong(page?.items ?? [], place.interrupt);
}
