// Endpoints of the app, with the documents of their requests and responses.
import { request } from "@wattle/page";
import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

/** A trade of a review. */
export type OperationRow = Schemas["OperationItem"];

/** One holding of a review. */
export type HoldingRow = Schemas["HoldingItem"];

/** The review that a person has to confirm. */
export type ReviewPayload = Schemas["Review"];

/** The data that a person confirmed. */
export type ConfirmedData = Schemas["Confirmed"];

export type Input = Schemas["Input"];
export type StoreResult = Schemas["StoreResult"];
export type Portfolio = Schemas["Portfolio"];

/** A thread with its pending review, or with the result of the write. */
export type ThreadView = Schemas["ThreadView"];

export type Operation = Schemas["Operation"];
export type Holding = Schemas["Holding"];

/** An event of the stream of a run. */
export type StreamEvent = Schemas["StreamEvent"];

/** A page of stored rows, such as an `OperationPage`. */
export interface Page<R> extends Omit<Schemas["OperationPage"], "items"> {
  items: R[];
}

/** Path of the endpoint that starts a run and streams the progress of each node. */
export const STREAM = "api/ai/asset-graph/stream";

export function readThread(threadId: string): Promise<ThreadView> {
  return request<ThreadView>(`api/ai/asset-graph/threads/${encodeURIComponent(threadId)}`);
}

export async function resume(threadId: string, confirmedData: ConfirmedData): Promise<StoreResult> {
  const body = { threadId, confirmedData };
  const answer = await request<Schemas["Resumed"]>("api/ai/asset-graph/resume", { body });
  return answer.storeResult;
}

export function listPortfolios(): Promise<Portfolio[]> {
  return request<Portfolio[]>("api/portfolios");
}

export function makePortfolio(name: string): Promise<Portfolio> {
  return request<Portfolio>("api/portfolios", { body: { name } });
}

/** Reads a page of the stored rows, of one portfolio or of all. */
export function listStored<R>(
  kind: "operations" | "holdings",
  portfolioId: number | undefined,
  before?: number,
): Promise<Page<R>> {
  const query = new URLSearchParams();
  if (portfolioId !== undefined) query.set("portfolioId", String(portfolioId));
  if (before !== undefined) query.set("before", String(before));
  return request<Page<R>>(`api/${kind}?${query}`);
}
