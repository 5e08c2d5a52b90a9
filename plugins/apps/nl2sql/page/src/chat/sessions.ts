// The list of sessions.
import { ApiError, toast, useConnection } from "@wattle/page";
import { useCallback, useEffect, useState } from "react";
import { deleteMessages, deleteSession, listSessions, SESSION_PAGE } from "./api.ts";
import type { Session } from "./types.ts";

export interface Sessions {
  sessions: readonly Session[];
  total: number;
  refresh: () => void;
  more: () => void;
  /** Resolves to true if it succeeded. A failure is shown. */
  remove: (id: string) => Promise<boolean>;
  clear: (id: string) => Promise<boolean>;
}

/** Maximum number of sessions of one request. */
const MOST = 200;

export function useSessions(): Sessions {
  const [limit, setLimit] = useState(SESSION_PAGE);
  const [found, setFound] = useState<{ sessions: readonly Session[]; total: number }>({
    sessions: [],
    total: 0,
  });
  const load = useCallback(async () => {
    try {
      setFound(await listSessions(limit));
    } catch (error) {
      // The banner shows a lost connection.
      if (error instanceof ApiError && error.kind === "network") return;
      toast(`会话列表没有加载：${error instanceof Error ? error.message : error}`, "error");
    }
  }, [limit]);
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
    more: () => setLimit((now) => Math.min(now + SESSION_PAGE, MOST)),
    remove: (id) => change(deleteSession(id)),
    clear: (id) => change(deleteMessages(id)),
  };
}
