// A session: read from the server, then shown.
import { useQuery } from "@tanstack/react-query";
import { Alert, ApiError, Button, navigate, Shell } from "@wattle/page";
import { useState } from "react";
import { api } from "./api.ts";
import styles from "./page.module.css";
import { Workspace } from "./workspace.tsx";

interface SessionPageProps {
  id: string;
  /** The first message, from the URL of a new session. */
  initial: string | undefined;
}

export function SessionPage({ id, initial }: SessionPageProps) {
  // The message is removed from the URL as soon as it is sent.
  const [first] = useState(initial);
  const { data, error } = useQuery({
    queryKey: ["session", id],
    queryFn: () => api.show(id),
    // The workspace reads the session again by itself, and a later visit must not begin with this one.
    enabled: ({ state }) => state.data === undefined,
    gcTime: 0,
  });
  if (data !== undefined) return <Workspace loaded={data} initial={first} />;
  const isMissing = error instanceof ApiError && error.status === 404;
  return (
    <Shell title="旅行手册">
      <div className={styles.loading}>
        {error === null ? (
          <p role="status">正在加载…</p>
        ) : (
          <Alert actions={<Button onClick={() => navigate(document.baseURI)}>返回首页</Button>}>
            {isMissing ? "没有这个手册，它可能已被删除。" : error.message}
          </Alert>
        )}
      </div>
    </Shell>
  );
}
