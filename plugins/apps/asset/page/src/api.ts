// The endpoints of the app and the documents that they take and give.
import { request } from "@wattle/page";

export type TaskType = "operation" | "holding" | "unknown";

/** One trade of a review. What was not found is `null`, or empty for texts. */
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

/** What a person is to confirm. */
export interface ReviewPayload {
  type: TaskType;
  rows: (OperationRow | HoldingRow)[];
  missingFields: string[];
  warnings: string[];
}

/** What a person confirms. */
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

/** A thread with its open question, or with what was stored of it. */
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

/** Starts a run and tells of every node. */
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

/** A page of what is stored, of one portfolio or of all. */
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
