// The conversation that is open: loads it, asks, waits for what another page or an earlier load
// of this one has asked, and agrees with other tabs.
import { ApiError, toast, useConnection, useTabs } from "@wattle/page";
import { useCallback, useEffect, useRef, useState } from "react";
import { ask, freshSession, listMessages } from "./api.ts";
import { begun, heard, merged, type Turn, turnsOf } from "./turns.ts";

/** Tabs post the session that has changed. */
const CHANNEL = "wattle-nl2sql";

/** Pause between two looks at a question that is worked on. */
const LOOK_MS = 1_500;

const NOT_FOUND = 404;

export interface Conversation {
  session: string | undefined;
  turns: readonly Turn[];
  /** The history is being loaded. */
  isLoading: boolean;
  /** A question is worked on. */
  isBusy: boolean;
  open: (session: string | undefined) => void;
  send: (question: string) => Promise<void>;
  reload: () => Promise<void>;
  /** Tells other tabs that a session has changed. */
  tell: (session: string) => void;
}

/** The session in the address, so that a reload opens it again. */
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

/** `onChange` is called when the list of sessions may have changed. */
export function useConversation(onChange: () => void): Conversation {
  const [session, setSession] = useState(sessionInAddress);
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [isLoading, setLoading] = useState(session !== undefined);
  // Something works on the session that this page does not hear.
  const [isRunning, setRunning] = useState(false);
  // What an answer that arrives late must not touch.
  const current = useRef(session);
  const asking = useRef(false);
  const changed = useRef(onChange);
  changed.current = onChange;

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
    // A session that this page has just made has nothing to load.
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
    const timer = setInterval(() => void reload(), LOOK_MS);
    return () => clearInterval(timer);
  }, [isWaiting, connection, reload]);

  // The end of a question is news for the list.
  const finished = turns.filter(({ state }) => state === "done" || state === "failed").length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: each finished question is news.
  useEffect(() => changed.current(), [finished]);

  const tell = useTabs(CHANNEL, (id) => {
    changed.current();
    const isOpen = id === undefined || id === current.current;
    if (isOpen && !asking.current) void reload();
  });

  async function send(question: string): Promise<void> {
    const id = current.current ?? freshSession();
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
          if (current.current === id) setTurns((all) => [...all, begun(key, question)]);
          tell(id);
          changed.current();
        },
        onTold: (told) => change((turn) => heard(turn, told)),
      });
    } catch (error) {
      // Nothing was begun: the text goes back into its field.
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
    // The banner says that the server is away, and the text is in its field again.
    if (!isNetwork(error)) toast(textOf(error), "error");
    asking.current = false;
    // Another tab may have asked: then this one shows it.
    await reload();
  }

  const isBusy = isWaiting || turns.some(({ state }) => state === "running");
  return { session, turns, isLoading, isBusy, open, send, reload, tell };
}
