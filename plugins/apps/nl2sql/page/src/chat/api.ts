// The app's endpoints. Their responses are `{code, message, data}`.
import { request } from "@wattle/page/api";
import { streamEvents } from "@wattle/page/sse";
import type {
  Message,
  Messages,
  Progress,
  Row,
  RowList,
  SessionList,
  Suggestions,
} from "./types.ts";

const SESSIONS = "api/chat/sessions";

/** Number of sessions by which the list grows. */
const SESSION_PAGE = 50;

/** Messages of one request, the maximum of the endpoint. */
const MESSAGE_PAGE = 200;

/** The last events of the stream. */
const ENDS = ["workflow_end", "workflow_error"];

async function data<T>(path: string, method = "GET"): Promise<T> {
  const { data: found } = await request<{ data: T }>(path, { method });
  return found;
}

/** Returns a page of the sessions, the newest first. */
export function listSessions(offset: number): Promise<SessionList> {
  return data(`${SESSIONS}?offset=${offset}&limit=${SESSION_PAGE}`);
}

const path = (id: string, what = "") => `${SESSIONS}/${encodeURIComponent(id)}${what}`;

export const deleteSession = (id: string) => data(path(id), "DELETE");

export const deleteMessages = (id: string) => data(path(id, "/messages"), "DELETE");

/** Returns all messages of a session, in as many requests as necessary. */
export async function listMessages(id: string): Promise<Messages> {
  const messages: Message[] = [];
  for (;;) {
    const query = `?offset=${messages.length}&limit=${MESSAGE_PAGE}`;
    const page = await data<Messages>(path(id, `/messages${query}`));
    messages.push(...page.messages);
    if (page.messages.length === 0 || messages.length >= page.total) {
      return { messages, total: page.total, pending: page.pending };
    }
  }
}

/** Returns all rows of an answer, of which a list of messages has the first ones. */
export async function allRows(id: string, message: number): Promise<Row[]> {
  return (await data<RowList>(path(id, `/messages/${message}/rows`))).rows;
}

export const suggestions = () => data<Suggestions>("api/chat/suggestions");

interface Question {
  session: string;
  message: string;
  /** Called when the question is accepted. */
  onAccepted: () => void;
  onEvent: (event: Progress) => void;
}

/** Asks a question and reports every step. Resolves at the end of the stream. */
export function ask({ session, message, onAccepted, onEvent }: Question): Promise<void> {
  return streamEvents("api/chat/stream", {
    body: { session_id: session, message },
    onOpen: onAccepted,
    isEnd: ({ event }) => ENDS.includes(event),
    onEvent: ({ data: text }) => onEvent(JSON.parse(text) as Progress),
  });
}

/**
 * Creates the id of a session. The page chooses it, so a reload in the middle of a question has it.
 */
export function newSessionId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
