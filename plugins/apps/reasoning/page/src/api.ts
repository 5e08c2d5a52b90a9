// Endpoints of the app. Every response is an envelope `{code, message, data, trace_id}`.
import { request } from "@wattle/page";

const SESSIONS = "api/v1/reasoning/sessions";

export type Status =
  | "created"
  | "running"
  | "waiting_clarification"
  | "completed"
  | "failed"
  | "cancelled";

export interface Named {
  code?: string;
  name?: string;
}

export type Row = Record<string, unknown>;

export interface Condition {
  field: string;
  op: string;
  value: unknown;
}

/** Result of a turn. */
export interface Result {
  summary?: string;
  data_execution_mode?: string;
  data_execution?: {
    ontology?: Named;
    plan?: { ignored?: Condition[] };
    /** Names of the fields for users. */
    labels?: Record<string, string>;
    total?: number | null;
    items?: Row[] | null;
  };
  selected_ontology?: Named;
  selected_task?: Named | null;
  candidate_attributes?: Named[];
  llm_route?: { provider: string; model: string };
}

export interface Turn {
  turn_id: string;
  turn_no: number;
  status: Status;
  /** Message of the user, with the answers to clarifications as further lines. */
  user_input: string;
  result?: Result | null;
  error?: { code?: string; message?: string } | null;
}

export interface Clarification {
  clarification_id: string;
  turn_id: string;
  question: string;
  status: "pending" | "answered" | "cancelled";
  answer?: { text?: string; [more: string]: unknown } | null;
}

/** A session with its turns and clarifications. */
export interface Session {
  session_id: string;
  status: Status;
  turns: Turn[];
  /** The pending clarification. */
  clarification: Clarification | null;
  clarifications: Clarification[];
}

/** One row of the audit trail. Rows never change. */
export interface TraceEvent {
  seq: number;
  step: string;
  event_type: string;
  created_at: string;
  payload: {
    call_id?: string;
    method?: string;
    purpose?: string;
    duration_ms?: number;
    error?: { code?: string; message?: string };
    [more: string]: unknown;
  };
}

export interface Trace {
  status: Status;
  events: TraceEvent[];
  next_after: number | null;
}

async function call<T>(path: string, body?: unknown): Promise<T> {
  const options = body === undefined ? {} : { body };
  return (await request<{ data: T }>(SESSIONS + path, options)).data;
}

const of = (id: string, what = "") => `/${encodeURIComponent(id)}${what}`;

export const api = {
  create: (text: string) => call<{ session_id: string }>("", { user_input: text }),
  show: (id: string) => call<Session>(of(id)),
  run: (id: string, text?: string) =>
    call<unknown>(of(id, "/run"), text === undefined ? {} : { user_input: text }),
  clarify: (id: string, text: string) =>
    call<unknown>(of(id, "/clarify"), { answer: { type: "clarification", text } }),
  cancel: (id: string) => call<unknown>(of(id, "/cancel"), {}),
  trace: (id: string, after: number) => call<Trace>(of(id, `/trace?after=${after}`)),
};
