// A session: read from the server, then shown.
import { Alert, ApiError, Button, Shell, useConnection } from "@wattle/page";
import { useCallback, useEffect, useState } from "react";
import { api, type WholeSession } from "./api.ts";
import { go } from "./route.ts";
import { Workspace } from "./workspace.tsx";

interface SessionPageProps {
  id: string;
  /** The first message, from the URL of a new session. */
  initial: string | undefined;
}

export function SessionPage({ id, initial }: SessionPageProps) {
  const [session, setSession] = useState<WholeSession>();
  const [error, setError] = useState<ApiError>();
  // The message is removed from the URL as soon as it is sent.
  const [first] = useState(initial);
  const load = useCallback(async () => {
    try {
      setSession(await api.show(id));
      setError(undefined);
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      setError(failure);
    }
  }, [id]);
  useEffect(() => void load(), [load]);
  useConnection(() => {
    if (session === undefined) void load();
  });
  if (session !== undefined) return <Workspace loaded={session} initial={first} />;
  return (
    <Shell title="旅行手册">
      <div className="t-loading">
        {error === undefined ? (
          <p role="status">正在加载…</p>
        ) : (
          <Alert actions={<Button onClick={() => go(document.baseURI)}>返回首页</Button>}>
            {error.status === 404 ? "没有这个手册，它可能已被删除。" : error.message}
          </Alert>
        )}
      </div>
    </Shell>
  );
}
