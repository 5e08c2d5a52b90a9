// Endpoints of the app. Every response is an envelope `{code, message, data, trace_id}`.
import { endpoints } from "@wattle/page/endpoints";
import type {
  Answer,
  ClarificationView,
  ModelOutput,
  paths,
  SessionView,
  WholeTurn,
} from "./schema.d.ts";

export type * from "./schema.d.ts";

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

const call = endpoints<paths>();

const SESSIONS = "/api/v1/reasoning/sessions";

const SESSION = `${SESSIONS}/{session_id}` as const;

const of = (session_id: string) => ({ path: { session_id } });

export const api = {
  create: async (text: string) =>
    (await call("post", SESSIONS, { body: { user_input: text } })).data,
  // The app returns the result of a turn and the answer of a client as they were stored.
  show: async (id: string) => (await call("get", SESSION, of(id))).data as Session,
  run: (id: string, text?: string) => {
    const body = text === undefined ? {} : { user_input: text };
    return call("post", `${SESSION}/run`, { ...of(id), body });
  },
  clarify: (id: string, text: string) => {
    const answer = { type: "clarification", text } as const;
    return call("post", `${SESSION}/clarify`, { ...of(id), body: { answer } });
  },
  cancel: (id: string) => call("post", `${SESSION}/cancel`, of(id)),
  trace: async (id: string, after: number) =>
    (await call("get", `${SESSION}/trace`, { ...of(id), query: { after } })).data,
};
