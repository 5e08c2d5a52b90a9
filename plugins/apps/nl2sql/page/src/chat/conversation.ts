// The open conversation: its history on the server, and the questions that this page asks.
import { skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import {
  ApiError,
  navigate,
  parameter,
  useConnection,
  useTabs,
  useUrl,
  withParameter,
} from "@wattle/page";
import { useEffect, useEffectEvent } from "react";
import { report } from "../failure.ts";
import { ask, listMessages, newSessionId } from "./api.ts";
import { SESSION_LIST } from "./sessions.ts";
import {
  type ChatHistory,
  historyOf,
  isStreaming,
  isWaiting,
  newTurn,
  type Turn,
  withEvent,
} from "./turns.ts";

/** Beginning of the keys of queries for histories. */
export const HISTORY = "history";

/** Channel on which tabs post the session that has changed. */
const CHANNEL = "wattle-nl2sql";

/** Interval at which a question in progress is read, in milliseconds. */
const POLL_MS = 1_500;

const NOT_FOUND = 404;

export type Conversation = ReturnType<typeof useConversation>;

/** Returns the open conversation. */
export function useConversation() {
  const client = useQueryClient();
  const connection = useConnection();
  // The URL has the session, so that a reload opens it again.
  const session = useUrl(() => parameter("session"));
  const { data, error, isLoading } = useQuery({
    queryKey: [HISTORY, session],
    queryFn:
      session === undefined
        ? skipToken
        : async () => {
            const found = await listMessages(session);
            return historyOf(found, client.getQueryData<ChatHistory>([HISTORY, session]));
          },
    // The stream of a question has all that a read could find.
    enabled: ({ state }) => !isStreaming(state.data),
    refetchInterval: ({ state }) =>
      isWaiting(state.data) && connection === "connected" ? POLL_MS : false,
  });

  const open = (id: string | undefined) => {
    const href = withParameter("session", id);
    if (href !== location.href) navigate(href);
  };

  const onError = useEffectEvent((error: Error) => {
    report(error);
    if (error instanceof ApiError && error.status === NOT_FOUND) open(undefined);
  });
  useEffect(() => {
    if (error !== null) onError(error);
  }, [error]);

  const readAgain = (...queryKey: string[]) => void client.invalidateQueries({ queryKey });
  const tell = useTabs(CHANNEL, (id) => {
    readAgain(SESSION_LIST);
    readAgain(HISTORY, id);
  });
  /** Reads the list of sessions again, and notifies other tabs that a session has changed. */
  const changed = (id: string) => {
    readAgain(SESSION_LIST);
    tell(id);
  };
  const isInProgress = isWaiting(data);
  useEffect(() => {
    // The answer that this page has waited for changes the list.
    if (isInProgress) return () => void client.invalidateQueries({ queryKey: [SESSION_LIST] });
  }, [isInProgress, client]);

  /** Resolves at the end of the answer. Rejects if the server has not accepted the question. */
  async function send(question: string): Promise<void> {
    const id = session ?? newSessionId();
    const queryKey = [HISTORY, id];
    const key = crypto.getRandomValues(new Uint32Array(1)).join();
    const edit = (change: (turn: Turn) => Turn) =>
      client.setQueryData<ChatHistory>(queryKey, (known) => {
        const turns = known?.turns.map((turn) => (turn.key === key ? change(turn) : turn));
        return turns && { turns, isRunning: false };
      });
    let isAccepted = false;
    try {
      await ask({
        session: id,
        message: question,
        onAccepted: () => {
          isAccepted = true;
          client.setQueryData<ChatHistory>(queryKey, (known) => ({
            turns: [...(known?.turns ?? []), newTurn(key, question)],
            isRunning: false,
          }));
          if (session === undefined) open(id);
          changed(id);
        },
        onEvent: (event) => edit((turn) => withEvent(turn, event)),
      });
    } catch (error) {
      if (!isAccepted) {
        report(error);
        // Another tab may have asked a question, which this tab then shows.
        readAgain(HISTORY, id);
        throw error;
      }
      edit((turn) => ({ ...turn, state: "waiting" }));
    } finally {
      changed(id);
    }
  }

  // Nothing can be asked while the history is being loaded, or a question is in progress.
  const isBusy = isLoading || isInProgress || isStreaming(data);
  return { session, turns: data?.turns ?? [], isLoading, isBusy, open, send, changed };
}
