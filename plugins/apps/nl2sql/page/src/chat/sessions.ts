// The list of sessions, which the endpoint returns in pages.
import { useInfiniteQuery } from "@tanstack/react-query";
import { listSessions } from "./api.ts";

/** Key of the query. */
export const SESSION_LIST = "sessions";

/**
 * Returns the query of the sessions. A session that moves to another page between two requests is in
 * both responses, and once in the list.
 */
export function useSessions() {
  return useInfiniteQuery({
    queryKey: [SESSION_LIST],
    queryFn: ({ pageParam }) => listSessions(pageParam),
    initialPageParam: 0,
    getNextPageParam: ({ sessions, total }, _, offset) => {
      const next = offset + sessions.length;
      return next < total ? next : undefined;
    },
    select: ({ pages }) => {
      const sessions = pages.flatMap((page) => page.sessions);
      const byId = new Map(sessions.map((session) => [session.session_id, session]));
      return { sessions: [...byId.values()], total: pages.at(-1)?.total ?? 0 };
    },
  });
}
