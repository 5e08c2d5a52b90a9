// The page: the conversation and the book.
import { useQuery } from "@tanstack/react-query";
import { Alert, Button, Segments, Shell, takeSuggestion } from "@wattle/page";
import { useEffect, useState } from "react";
import { useBook } from "./book.ts";
import { BookPanel } from "./book-panel.tsx";
import { Chat } from "./chat.tsx";
import styles from "./page.module.css";
import { putThreadInUrl, readThread, threadInUrl } from "./thread.ts";

export function App() {
  const [id] = useState(threadInUrl);
  const [suggested] = useState(takeSuggestion);
  // Number of conversations that the user has begun since the page was loaded.
  const [begun, setBegun] = useState(0);
  const [view, setView] = useState<"chat" | "book">("chat");
  const book = useBook();
  const {
    data: thread,
    error,
    refetch,
  } = useQuery({
    queryKey: ["thread", id],
    queryFn: () => readThread(id),
    // The chat synchronizes a conversation that has been read.
    enabled: ({ state }) => id !== undefined && state.data === undefined,
  });
  const isGone = thread === null && begun === 0;
  useEffect(() => {
    if (isGone) putThreadInUrl(undefined);
  }, [isGone]);
  const begin = () => {
    putThreadInUrl(undefined);
    setBegun((count) => count + 1);
    setView("chat");
  };

  const actions = (
    <>
      <div className={styles.views}>
        <Segments
          label="显示"
          value={view}
          onChange={setView}
          options={[
            { value: "chat", name: "对话" },
            { value: "book", name: "账本" },
          ]}
        />
      </div>
      <Button onClick={begin}>新对话</Button>
    </>
  );
  return (
    <Shell title="记账助手" layout="fixed" actions={actions}>
      <div className={styles.page} data-view={view}>
        <div className={styles.chat}>
          {isGone && (
            <p className={styles.notice} role="status">
              对话不存在或已过期，已开始新的对话。
            </p>
          )}
          {id === undefined || thread !== undefined || begun > 0 ? (
            <Chat
              key={begun}
              loaded={begun === 0 && thread ? thread : undefined}
              initial={begun === 0 ? suggested : ""}
              zone={book.zone}
              onBooked={book.read}
            />
          ) : error ? (
            <Alert actions={<Button onClick={() => void refetch()}>重试</Button>}>
              {error.message}
            </Alert>
          ) : (
            <p className={styles.loading} role="status">
              正在读取对话…
            </p>
          )}
        </div>
        <BookPanel {...book} />
      </div>
    </Shell>
  );
}
