// Endpoints of the app.
import { ApiError } from "@wattle/page/api";
import { endpoints } from "@wattle/page/endpoints";
import type { Confirmed, paths } from "./schema.d.ts";

export type * from "./schema.d.ts";

const call = endpoints<paths>();

/** Statuses of a thread that does not exist, and of one that has expired or has no review. */
const GONE = [404, 410];

/** Returns true for the error of a thread that cannot be continued. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && GONE.includes(error.status ?? 0);
}

export const readThread = (threadId: string) =>
  call("get", "/api/ai/asset-graph/threads/{threadId}", { path: { threadId } });

export async function resume(threadId: string, confirmedData: Confirmed) {
  const body = { threadId, confirmedData };
  return (await call("post", "/api/ai/asset-graph/resume", { body })).storeResult;
}

export const listPortfolios = () => call("get", "/api/portfolios");

export const makePortfolio = (name: string) => call("post", "/api/portfolios", { body: { name } });

/** The stored rows of one portfolio or of all, those before an id. */
export interface StoredQuery {
  portfolioId: number | undefined;
  before: number | undefined;
}

export const listOperations = (query: StoredQuery) => call("get", "/api/operations", { query });

export const listHoldings = (query: StoredQuery) => call("get", "/api/holdings", { query });
