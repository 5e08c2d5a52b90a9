// The open conversation: loads it, asks questions, waits for questions of another page or of an
// earlier load of this one, and synchronizes with other tabs.
import { ApiError, toast, useConnection, useTabs } from "@wattle/page";
import { useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import { ask, listMessages, newSessionId } from "./api.ts";
import { merged, newTurn, type Turn, turnsOf, withEvent } from "./turns.ts";

/** Channel on which tabs post the session that has changed. */
const CHANNEL = "wattle-nl2sql";

/** Interval at which a question in progress is read, in milliseconds. */
const POLL_MS = 1_500;

const NOT_FOUND = 404;

export interface Conversation {
  session: string | undefined;
  turns: readonly Turn[];
  /** The history is being loaded. */
  isLoading: boolean;
  /** A question is in progress. */
  isBusy: boolean;
  open: (session: string | undefined) => void;
  send: (question: string) => Promise<void>;
  reload: () => Promise<void>;
  /** Notifies other tabs that a session has changed. */
  tell: (session: string) => void;
}

/** Returns the session in the URL, so that a reload opens it again. */
function sessionInAddress(): string | undefined {
  return new URLSearchParams(location.search).get("session") ?? undefined;
}

function writeAddress(session: string | undefined): void {
  const url = new URL(location.href);
  if (session === undefined) url.searchParams.delete("session");
  else url.searchParams.set("session", session);
  if (url.href !== location.href) history.pushState(null, "", url);
}

function isNetwork(error: unknown): boolean {
  return error instanceof ApiError && error.kind === "network";
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the open conversation. Calls `onChange` when the list of sessions may have changed. */
export function useConversation(onChange: () => void): Conversation {
  const [session, setSession] = useState(sessionInAddress);
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [isLoading, setLoading] = useState(session !== undefined);
  // A run is active on the session, and this page does not have its stream.
  const [isRunning, setRunning] = useState(false);
  // The open session, which late responses for another session must not change.
  const current = useRef(session);
  const asking = useRef(false);
  // Number of questions that were accepted.
  const [accepted, setAccepted] = useState(0);
  const changed = useEffectEvent(onChange);

  const show = useCallback((id: string | undefined) => {
    if (current.current === id) return;
    current.current = id;
    asking.current = false;
    setSession(id);
    setTurns([]);
    setRunning(false);
    setLoading(id !== undefined);
  }, []);

  const open = useCallback(
    (id: string | undefined) => {
      show(id);
      writeAddress(id);
    },
    [show],
  );

  const reload = useCallback(async () => {
    const id = current.current;
    if (id === undefined) return;
    try {
      const found = await listMessages(id);
      if (current.current !== id || asking.current) return;
      const isRunning = found.pending?.status === "running";
      setTurns((known) => merged(turnsOf(found), known, isRunning));
      setRunning(isRunning);
    } catch (error) {
      if (current.current !== id) return;
      if (error instanceof ApiError && error.status === NOT_FOUND) open(undefined);
      if (!isNetwork(error)) toast(textOf(error), "error");
    } finally {
      if (current.current === id) setLoading(false);
    }
  }, [open]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a session is loaded when it is opened.
  useEffect(() => {
    // A session that this page has just created has nothing to load.
    if (!asking.current) void reload();
  }, [session, reload]);

  useEffect(() => {
    const moved = () => show(sessionInAddress());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, [show]);

  const isWaiting = isRunning || turns.at(-1)?.state === "waiting";
  const connection = useConnection(() => void reload());
  useEffect(() => {
    if (!isWaiting || connection === "lost") return;
    const timer = setInterval(() => void reload(), POLL_MS);
    return () => clearInterval(timer);
  }, [isWaiting, connection, reload]);

  // The start and the end of a question change the list.
  const finished = turns.filter(({ state }) => state === "done" || state === "failed").length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each such question is news.
  useEffect(() => changed(), [accepted, finished]);

  const tell = useTabs(CHANNEL, (id) => {
    onChange();
    const isOpen = id === undefined || id === current.current;
    if (isOpen && !asking.current) void reload();
  });

  async function send(question: string): Promise<void> {
    const id = current.current ?? newSessionId();
    const wasNew = current.current === undefined;
    const key = crypto.getRandomValues(new Uint32Array(1)).join();
    const change = (edit: (turn: Turn) => Turn) => {
      if (current.current !== id) return;
      setTurns((all) => all.map((turn) => (turn.key === key ? edit(turn) : turn)));
    };
    asking.current = true;
    let isOpen = false;
    try {
      await ask({
        session: id,
        message: question,
        onOpen: () => {
          isOpen = true;
          if (wasNew) {
            current.current = id;
            setSession(id);
            writeAddress(id);
          }
          if (current.current === id) setTurns((all) => [...all, newTurn(key, question)]);
          tell(id);
          setAccepted((count) => count + 1);
        },
        onEvent: (event) => change((turn) => withEvent(turn, event)),
      });
    } catch (error) {
      // Nothing was started, so the text returns to its field.
      if (!isOpen) {
        void afterRefusal(error);
        throw error;
      }
      change((turn) => ({ ...turn, state: "waiting" }));
    } finally {
      if (current.current === id) asking.current = false;
      tell(id);
    }
  }

  async function afterRefusal(error: unknown): Promise<void> {
    // The banner shows a lost connection, and the text is in its field again.
    if (!isNetwork(error)) toast(textOf(error), "error");
    asking.current = false;
    // Another tab may have asked a question, which this tab then shows.
    await reload();
  }

  const isBusy = isWaiting || turns.some(({ state }) => state === "running");
  return { session, turns, isLoading, isBusy, open, send, reload, tell };
}
