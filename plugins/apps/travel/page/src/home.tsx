// The start, where a video and wishes begin a session.
import { useQuery } from "@tanstack/react-query";
import {
  Alert,
  ApiError,
  Button,
  navigate,
  Panel,
  Shell,
  TextField,
  takeSuggestion,
  useOnce,
} from "@wattle/page";
import { type FormEvent, useState } from "react";
import { api } from "./api.ts";
import styles from "./page.module.css";
import { sessionAddress } from "./route.ts";
import { FinalTime, StatusMark } from "./status.tsx";

export function Home() {
  return (
    <Shell title="旅行手册">
      <div className={styles.home}>
        <Start />
        <Recent />
      </div>
    </Shell>
  );
}

function Start() {
  const [suggested] = useState(takeSuggestion);
  const isAddress = /^https?:/.test(suggested);
  const [video, setVideo] = useState(isAddress ? suggested : "");
  const [wishes, setWishes] = useState(isAddress ? "" : suggested);
  const [error, setError] = useState<string>();
  const [start, isBusy] = useOnce(async () => {
    const message = [video.trim(), wishes.trim()].filter((part) => part !== "").join("\n\n");
    if (message === "") {
      setError("请填写视频链接或旅行要求。");
      return;
    }
    setError(undefined);
    try {
      const { id } = await api.create();
      navigate(sessionAddress(id, message));
    } catch (failure) {
      setError(failure instanceof ApiError ? failure.message : String(failure));
    }
  });
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    void start();
  };
  return (
    <Panel title="从视频生成旅行手册">
      <form className={styles.start} onSubmit={onSubmit}>
        <TextField
          label="视频链接"
          inputMode="url"
          placeholder="https://www.youtube.com/watch?v=…"
          value={video}
          onChange={setVideo}
        />
        <TextField
          label="旅行要求（可选）"
          rows={3}
          placeholder="例如：三天两晚，带孩子，多安排美食"
          value={wishes}
          onChange={setWishes}
        />
        {error && <Alert>{error}</Alert>}
        <Button kind="primary" type="submit" busy={isBusy}>
          {isBusy ? "正在创建…" : "开始生成"}
        </Button>
      </form>
    </Panel>
  );
}

function Recent() {
  // The banner shows a lost connection, and the list is read when it is restored.
  const { data } = useQuery({ queryKey: ["sessions"], queryFn: api.list });
  const sessions = data?.sessions ?? [];
  if (sessions.length === 0) return null;
  return (
    <Panel title="最近的手册">
      <ul className={styles.recent}>
        {sessions.map((session) => (
          <li key={session.id}>
            <a
              href={sessionAddress(session.id)}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                navigate(sessionAddress(session.id));
              }}
            >
              {session.title}
            </a>
            <StatusMark status={session.status} />
            <FinalTime session={session} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
