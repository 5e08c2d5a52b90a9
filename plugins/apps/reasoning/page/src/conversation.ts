// A conversation that is synchronized with the server. It is the same after a reload, in another
// tab and after a lost connection.
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { ApiError } from "@wattle/page";
import { connected } from "@wattle/page/connection";
import { useEffect, useState } from "react";
import { api, type Session, type Trace, type TraceEvent } from "./api.ts";
import { closedEntries, conversationEntries, type Entry, type Failure, saidIn } from "./entries.ts";
import { sessionIn, withSession } from "./place.ts";

/** Milliseconds between two reads of a session, during a run and otherwise. */
const INTERVAL_MS = { running: 1_000, idle: 3_000 };

/** Milliseconds between two attempts to read a session that the server does not answer for. */
const RETRY_MS = 1_000;

/** A session and its audit trail, as they were read. */
interface SessionData {
  session: Session;
  events: readonly TraceEvent[];
}

/** What this tab has beside the session. */
interface LocalState {
  /** Differs for each conversation that the tab has opened. */
  key: symbol;
  /** The session; `null` before the first message. */
  id: string | null;
  /** Entries of earlier sessions that stay visible. */
  before: readonly Entry[];
  /** The last message of the user, and the number of messages that the session had before it. */
  sent: { text: string; after: number } | null;
  /** Failure that is not in a session. */
  failure: Failure | null;
  /** True during a request of this tab that runs a turn. */
  isActing: boolean;
}

function initialState(id: string | null): LocalState {
  return { key: Symbol(), id, before: [], sent: null, failure: null, isActing: false };
}

/** The query of a session. A session that does not exist is not asked for again. */
function sessionQuery(id: string) {
  const queryKey = ["session", id];
  return queryOptions({
    queryKey,
    queryFn: ({ client }) => readSession(id, client.getQueryData<SessionData>(queryKey)),
    retry: (_, error) => !isGone(error),
    retryDelay: RETRY_MS,
  });
}

/** Reads the new rows of the trail, and the session if it has changed. */
async function readSession(id: string, known: SessionData | undefined): Promise<SessionData> {
  await connected();
  const events = [...(known?.events ?? [])];
  let page: Trace;
  do {
    page = await api.trace(id, events.at(-1)?.seq ?? 0);
    events.push(...page.events);
  } while (page.next_after !== null);
  if (known?.events.length === events.length && known.session.status === page.status) return known;
  return { session: await api.show(id), events };
}

/** Returns the conversation of the session in the URL, and what a user can do with it. */
export function useConversation() {
  const client = useQueryClient();
  const [local, setLocal] = useState(() => initialState(sessionIn(location.hash)));
  const { data, error, failureReason, refetch } = useQuery({
    ...sessionQuery(local.id ?? ""),
    enabled: local.id !== null,
    refetchInterval: ({ state }) => {
      const isRunning = local.isActing || state.data?.session.status === "running";
      return !isGone(state.error) && INTERVAL_MS[isRunning ? "running" : "idle"];
    },
  });
  // A session that does not exist is left, and the next message begins another one.
  const gone = isGone(error) ? error : null;
  const id = gone ? null : local.id;
  const session = (!gone && data?.session) || null;
  const isRunning = local.isActing || session?.status === "running";
  const { before, sent } = local;
  const pending = sent && saidIn(session) <= sent.after ? sent.text : undefined;
  const failure = local.failure ?? (gone && failureOf(gone));
  const entries = conversationEntries({ before, session, pending, failure, isRunning });

  useEffect(() => {
    const follow = () => {
      const named = sessionIn(location.hash);
      setLocal((now) => (now.id === named ? now : initialState(named)));
    };
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  useEffect(() => {
    if (sessionIn(location.hash) !== id) history.pushState(null, "", withSession(id));
  }, [id]);

  /** Changes this conversation, unless another one was opened since. */
  const change = (changes: Partial<LocalState>) =>
    setLocal((now) => (now.key === local.key ? { ...now, ...changes } : now));

  /** Reads a session as it is now. Without a connection, this is once it is restored. */
  const settle = async (target: string): Promise<Session | null> => {
    const query = sessionQuery(target);
    await client.ensureQueryData(query).catch(() => undefined);
    // A read that began earlier may have missed the end of the run.
    await client.refetchQueries({ queryKey: query.queryKey });
    return client.getQueryData(query.queryKey)?.session ?? null;
  };

  /**
   * Performs an action that runs a turn, and then reads the session. Returns true if the session
   * has more than `after` messages of the user.
   */
  const perform = async (
    target: string | null,
    after: number,
    act: (begin: (id: string) => void) => Promise<unknown>,
  ): Promise<boolean> => {
    let acted = target;
    const begin = (made: string) => {
      acted = made;
      change({ id: made });
    };
    change({ isActing: true, failure: null });
    const failed = await act(begin).then(() => null, failureOf);
    const settled = acted === null ? null : await settle(acted);
    const isStored = saidIn(settled) > after;
    // The session shows the failure of a turn that has run.
    const isShown = isStored && settled?.status !== "created";
    if (failed && !isShown) change({ failure: failed });
    change({ isActing: false });
    return isStored;
  };

  /**
   * Sends a message: an answer to a clarification, the first message of a session, or a further
   * question. Rejects if the message was not stored, so that the text is not lost.
   */
  const send = async (text: string) => {
    if (isRunning) throw new Error("a run is under way");
    // A closed session is left. Its entries stay visible above those of the next one.
    const isClosed = session?.status === "cancelled";
    const target = isClosed ? null : id;
    const after = isClosed ? 0 : saidIn(session);
    change({
      id: target,
      before: isClosed ? closedEntries(entries) : before,
      sent: { text, after },
    });
    const isStored = await perform(target, after, async (begin) => {
      if (target === null) {
        const { session_id: made } = await api.create(text);
        begin(made);
        await api.run(made);
      } else if (session?.clarification) {
        await api.clarify(target, text);
        await api.run(target);
      } else await api.run(target, text);
    });
    if (isStored) return;
    change({ sent: null });
    throw new Error("the message was not stored");
  };

  /** Runs the newest turn, which failed or never ran. */
  const retry = async () => {
    if (id === null || isRunning) return;
    await perform(id, -1, () => api.run(id));
  };

  /** Cancels the session and its run. The request that started the run reports how it ended. */
  const stop = async () => {
    if (id === null) return;
    await api.cancel(id).catch((error: unknown) => change({ failure: failureOf(error) }));
    await settle(id);
  };

  const startOver = () => setLocal(initialState(null));
  const events = (!gone && data?.events) || [];
  const problem = gone ? undefined : failureReason?.message;
  const shown = { id, session, events, entries, isRunning, problem };
  return { ...shown, send, retry, stop, startOver, refresh: () => void refetch() };
}

function isGone(error: Error | null): error is ApiError {
  return error instanceof ApiError && error.status === 404;
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof ApiError)) return { message: String(error), code: "page" };
  const code = [error.status, error.code].filter((part) => part !== undefined).join(" / ");
  return { message: error.message, code: code || error.kind };
}
