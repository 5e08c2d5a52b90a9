// Endpoints of the app, with the documents of their requests and responses.
import { request } from "@wattle/page";
import type {
  Confirmed,
  OperationPage,
  Portfolio,
  Resumed,
  StoreResult,
  ThreadView,
} from "./schema.d.ts";

export type * from "./schema.d.ts";

/** A page of stored rows, such as an `OperationPage`. */
export interface Page<R> extends Omit<OperationPage, "items"> {
  items: R[];
}

/** Path of the endpoint that starts a run and streams the progress of each node. */
export const STREAM = "api/ai/asset-graph/stream";

export function readThread(threadId: string): Promise<ThreadView> {
  return request<ThreadView>(`api/ai/asset-graph/threads/${encodeURIComponent(threadId)}`);
}

export async function resume(threadId: string, confirmedData: Confirmed): Promise<StoreResult> {
  const body = { threadId, confirmedData };
  const answer = await request<Resumed>("api/ai/asset-graph/resume", { body });
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
