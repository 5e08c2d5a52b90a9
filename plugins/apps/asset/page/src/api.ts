// Endpoints of the app, with the documents of their requests and responses.
import { request } from "@wattle/page";

export type TaskType = "operation" | "holding" | "unknown";

/** A trade of a review. Values that were not found are `null`, or empty for texts. */
export interface OperationRow {
  ticker: string;
  name: string;
  action: "buy" | "sell";
  quantity: number | null;
  price: number | null;
  currency: string;
  tradedAt: string | null;
  memo?: string;
}

/** One holding of a review. */
export interface HoldingRow {
  ticker: string;
  name: string;
  quantity: number | null;
  costPrice: number | null;
  currency: string;
}

/** The review that a person has to confirm. */
export interface ReviewPayload {
  type: TaskType;
  rows: (OperationRow | HoldingRow)[];
  missingFields: string[];
  warnings: string[];
}

/** The data that a person confirmed. */
export interface ConfirmedData {
  type: "operation" | "holding";
  rows: (OperationRow | HoldingRow)[];
  riskCategory: string;
  portfolioId: number;
}

export interface Input {
  imageData?: string;
  textInput?: string;
}

export interface StoreResult {
  success: boolean;
  ids: number[];
}

export interface Portfolio {
  id: number;
  name: string;
}

/** A thread with its pending review, or with the result of the write. */
export interface ThreadView {
  threadId: string;
  reviewPayload?: ReviewPayload;
  storeResult?: StoreResult;
}

interface Stored {
  id: number;
  ticker: string;
  name: string;
  quantity: number;
  currency: string;
  riskCategory: string;
  portfolioId: number;
  createdAt: string;
}

export interface Operation extends Stored {
  action: "buy" | "sell";
  price: number;
  tradedAt: string;
  memo: string | null;
}

export interface Holding extends Stored {
  costPrice: number;
}

export interface Page<R> {
  items: R[];
  nextBefore: number | null;
}

/** Path of the endpoint that starts a run and streams the progress of each node. */
export const STREAM = "api/ai/asset-graph/stream";

export function readThread(threadId: string): Promise<ThreadView> {
  return request<ThreadView>(`api/ai/asset-graph/threads/${encodeURIComponent(threadId)}`);
}

export async function resume(threadId: string, confirmedData: ConfirmedData): Promise<StoreResult> {
  const body = { threadId, confirmedData };
  const answer = await request<{ storeResult: StoreResult }>("api/ai/asset-graph/resume", { body });
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
