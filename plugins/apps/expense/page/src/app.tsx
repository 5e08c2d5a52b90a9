// The page: the conversation and the book.
import { ApiError, Button, Segments, Shell, useConnection } from "@wattle/page";
import { useCallback, useEffect, useState } from "react";
import { useBook } from "./book.ts";
import { BookPanel } from "./book-panel.tsx";
import { Chat } from "./chat.tsx";
import { readAddress, readThread, type Thread, withThread } from "./thread.ts";
import "./page.css";

const TITLE = "记账助手";
const GONE = "对话不存在或已过期，已开始新的对话。";

/** State of the conversation that the URL names. */
type Loading = { state: "loading" | "failed"; why?: string } | { state: "ready"; thread?: Thread };

export function App() {
  const [{ thread: named, initial }] = useState(() => readAddress(location.href));
  const [loading, setLoading] = useState<Loading>({ state: named ? "loading" : "ready" });
  const [notice, setNotice] = useState<string>();
  const [epoch, setEpoch] = useState(0);
  const [view, setView] = useState<"chat" | "book">("chat");
  const book = useBook();

  const load = useCallback(async () => {
    if (named === undefined) return;
    setLoading({ state: "loading" });
    try {
      const thread = await readThread(named);
      if (thread === undefined) {
        history.replaceState(null, "", withThread(location.href, undefined));
        setNotice(GONE);
        setLoading({ state: "ready" });
      } else {
        setLoading({ state: "ready", thread });
      }
    } catch (error) {
      setLoading({ state: "failed", why: error instanceof ApiError ? error.message : "请重试。" });
    }
  }, [named]);
  useEffect(() => void load(), [load]);
  useConnection(() => {
    if (loading.state === "failed") void load();
  });
  const onThread = useCallback((id: string) => {
    history.replaceState(null, "", withThread(location.href, id));
  }, []);
  const begin = () => {
    history.replaceState(null, "", withThread(location.href, undefined));
    setNotice(undefined);
    setLoading({ state: "ready" });
    setEpoch((count) => count + 1);
    setView("chat");
  };

  const actions = (
    <>
      <div className="e-views">
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
    <Shell title={TITLE} layout="fixed" actions={actions}>
      <div className="e-page" data-view={view}>
        <div className="e-chat">
          {notice !== undefined && (
            <p className="e-notice" role="status">
              {notice}
            </p>
          )}
          {loading.state === "ready" ? (
            <Chat
              key={epoch}
              loaded={loading.thread}
              initial={epoch === 0 ? initial : ""}
              zone={book.zone}
              onThread={onThread}
              onBooked={book.read}
            />
          ) : (
            <div className="e-loading" role="status">
              {loading.state === "loading" ? <p>正在读取对话…</p> : <p>{loading.why}</p>}
              {loading.state === "failed" && <Button onClick={() => void load()}>重试</Button>}
            </div>
          )}
        </div>
        <BookPanel {...book} />
      </div>
    </Shell>
  );
}
