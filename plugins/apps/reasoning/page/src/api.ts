// Endpoints of the app. Every response is an envelope `{code, message, data, trace_id}`.
import { request } from "@wattle/page";
import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

const SESSIONS = "api/v1/reasoning/sessions";

export type Status = Schemas["Status"];

export interface Named {
  code?: string;
  name?: string;
}

export type Row = Record<string, unknown>;

export type Condition = Schemas["WantedFilter"];

/**
 * Result of a turn, as far as the page shows it. The app returns it as it was stored, so any part may
 * be missing.
 */
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

export interface Turn extends Omit<Schemas["WholeTurn"], "result"> {
  result: Result | null;
}

export interface Clarification extends Omit<Schemas["ClarificationView"], "answer"> {
  /** The answer as a client sent it. */
  answer: Partial<Schemas["Answer"]> | null;
}

/** A session with its turns and clarifications. */
export interface Session extends Omit<Schemas["SessionView"], "turns" | "clarifications"> {
  turns: Turn[];
  clarifications: Clarification[];
}

export type TraceEvent = Schemas["TraceEvent"];
export type Trace = Schemas["Trace"];

async function call<T>(path: string, body?: unknown): Promise<T> {
  const options = body === undefined ? {} : { body };
  return (await request<{ data: T }>(SESSIONS + path, options)).data;
}

const of = (id: string, what = "") => `/${encodeURIComponent(id)}${what}`;

export const api = {
  create: (text: string) => call<Schemas["CreatedSession"]>("", { user_input: text }),
  show: (id: string) => call<Session>(of(id)),
  run: (id: string, text?: string) =>
    call<unknown>(of(id, "/run"), text === undefined ? {} : { user_input: text }),
  clarify: (id: string, text: string) =>
    call<unknown>(of(id, "/clarify"), { answer: { type: "clarification", text } }),
  cancel: (id: string) => call<unknown>(of(id, "/cancel"), {}),
  trace: (id: string, after: number) => call<Trace>(of(id, `/trace?after=${after}`)),
};
