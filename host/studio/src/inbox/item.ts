// A pending interrupt in the list over all threads, and the request for a page of the list.
import { api, type Schemas } from "../api/client.ts";

export interface InboxItem {
  thread_id: string;
  app: string;
  graph: string;
  tenant?: string | null;
  run_id?: string | null;
  updated_ms: number;
  interrupt: Schemas["QuestionDocument"];
}

interface InboxQuery {
  app?: string;
  graph?: string;
  tenant?: string;
  cursor?: string;
  limit: number;
}

type InboxPage = { items: InboxItem[]; next_cursor?: string | null };

type Answer = Promise<{ data?: InboxPage; error?: unknown; response: Response }>;

type Untyped = { GET(path: string, init: { params: { query: InboxQuery } }): Answer };

export function getInterrupts(query: InboxQuery): Answer {
  return (api as unknown as Untyped).GET("/api/v1/interrupts", { params: { query } });
}
