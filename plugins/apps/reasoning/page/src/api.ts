// Endpoints of the app. Every response is an envelope `{code, message, data, trace_id}`.
import { request } from "@wattle/page";
import type {
  Answer,
  ClarificationView,
  CreatedSession,
  ModelOutput,
  SessionView,
  Trace,
  WholeTurn,
} from "./schema.d.ts";

export type * from "./schema.d.ts";

const SESSIONS = "api/v1/reasoning/sessions";

export type Row = Record<string, unknown>;

/** A document of which any part may be missing. */
export type Parts<T> = T extends (infer E)[]
  ? Parts<E>[]
  : T extends object
    ? { [K in keyof T]?: Parts<T[K]> }
    : T;

/** Result of a turn, which the app returns as it was stored. */
export type Result = Parts<ModelOutput>;

export interface Turn extends Omit<WholeTurn, "result"> {
  result: Result | null;
}

export interface Clarification extends Omit<ClarificationView, "answer"> {
  /** The answer as a client sent it. */
  answer: Partial<Answer> | null;
}

/** A session with its turns and clarifications. */
export interface Session extends Omit<SessionView, "turns" | "clarifications"> {
  turns: Turn[];
  clarifications: Clarification[];
}

async function call<T>(path: string, body?: unknown): Promise<T> {
  const options = body === undefined ? {} : { body };
  return (await request<{ data: T }>(SESSIONS + path, options)).data;
}

const of = (id: string, what = "") => `/${encodeURIComponent(id)}${what}`;

export const api = {
  create: (text: string) => call<CreatedSession>("", { user_input: text }),
  show: (id: string) => call<Session>(of(id)),
  run: (id: string, text?: string) =>
    call<unknown>(of(id, "/run"), text === undefined ? {} : { user_input: text }),
  clarify: (id: string, text: string) =>
    call<unknown>(of(id, "/clarify"), { answer: { type: "clarification", text } }),
  cancel: (id: string) => call<unknown>(of(id, "/cancel"), {}),
  trace: (id: string, after: number) => call<Trace>(of(id, `/trace?after=${after}`)),
};
