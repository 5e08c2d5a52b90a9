// The list of sessions.
import { ApiError, inOrder, toast, useConnection } from "@wattle/page";
import { useCallback, useEffect, useMemo, useState } from "react";
import { deleteMessages, deleteSession, listSessions, SESSION_PAGE } from "./api.ts";
import type { Session, SessionList } from "./types.ts";

export interface Sessions {
  sessions: readonly Session[];
  total: number;
  refresh: () => void;
  more: () => void;
  /** Resolves to true if it succeeded. A failure is shown. */
  remove: (id: string) => Promise<boolean>;
  clear: (id: string) => Promise<boolean>;
}

export function useSessions(): Sessions {
  const [count, setCount] = useState(SESSION_PAGE);
  const [found, setFound] = useState<SessionList>({ sessions: [], total: 0 });
  const read = useMemo(() => inOrder(listSessions), []);
  const load = useCallback(async () => {
    try {
      const list = await read(count);
      if (list !== undefined) setFound(list);
    } catch (error) {
      // The banner shows a lost connection.
      if (error instanceof ApiError && error.kind === "network") return;
      toast(`会话列表没有加载：${error instanceof Error ? error.message : error}`, "error");
    }
  }, [read, count]);
  const refresh = useCallback(() => void load(), [load]);
  useEffect(refresh, [refresh]);
  useConnection(refresh);

  async function change(work: Promise<unknown>): Promise<boolean> {
    try {
      await work;
      refresh();
      return true;
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "error");
      return false;
    }
  }

  return {
    ...found,
    refresh,
    more: () => setCount((now) => now + SESSION_PAGE),
    remove: (id) => change(deleteSession(id)),
    clear: (id) => change(deleteMessages(id)),
  };
}
