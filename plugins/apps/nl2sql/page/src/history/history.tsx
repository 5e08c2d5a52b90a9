// The list of sessions: opens, clears and deletes them.
import { useQueryClient } from "@tanstack/react-query";
import { Alert, Button, Dialog, useOnce } from "@wattle/page";
import { useState } from "react";
import { deleteMessages, deleteSession } from "../chat/api.ts";
import { HISTORY } from "../chat/conversation.ts";
import { useSessions } from "../chat/sessions.ts";
import type { Session } from "../chat/types.ts";
import { isNetwork, report } from "../failure.ts";
import styles from "../page.module.css";

interface HistoryProps {
  current: string | undefined;
  onOpen: (session: string | undefined) => void;
  /** Called after a session or its messages were deleted. */
  onChanged: (session: string) => void;
}

interface Question {
  session: Session;
  what: "delete" | "clear";
}

const TEXTS = {
  delete: {
    title: "删除会话",
    sign: "×",
    text: "会话的消息和下载文件会一起删除，不能恢复。",
    button: "删除",
  },
  clear: {
    title: "清空消息",
    sign: "⌫",
    text: "会话保留，它的消息和下载文件会删除，不能恢复。",
    button: "清空",
  },
} as const;

/** Formats `2025-01-15T10:30:45+08:00` as `01-15 10:30`. */
export function shortTime(iso: string): string {
  return iso.slice(5, 16).replace("T", " ");
}

export function History({ current, onOpen, onChanged }: HistoryProps) {
  const client = useQueryClient();
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useSessions();
  const [question, setQuestion] = useState<Question>();
  const [confirm, isBusy] = useOnce(async () => {
    if (question === undefined) return;
    const isDeletion = question.what === "delete";
    const id = question.session.session_id;
    try {
      await (isDeletion ? deleteSession(id) : deleteMessages(id));
    } catch (error) {
      return report(error);
    }
    setQuestion(undefined);
    onChanged(id);
    if (!isDeletion) void client.resetQueries({ queryKey: [HISTORY, id] });
    else if (id === current) onOpen(undefined);
  });
  const texts = TEXTS[question?.what ?? "delete"];
  return (
    <>
      {error !== null && !isNetwork(error) && <Alert>会话列表没有加载：{error.message}</Alert>}
      {data?.sessions.length === 0 && <p className="w-note">还没有会话</p>}
      <ul className={styles.sessions}>
        {data?.sessions.map((session) => (
          <Row
            key={session.session_id}
            session={session}
            isCurrent={session.session_id === current}
            onOpen={onOpen}
            onAsk={(what) => setQuestion({ session, what })}
          />
        ))}
      </ul>
      {hasNextPage && (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          更多（共 {data?.total} 个）
        </Button>
      )}
      <Dialog
        open={question !== undefined}
        title={texts.title}
        onClose={() => setQuestion(undefined)}
        footer={
          <>
            <Button onClick={() => setQuestion(undefined)}>取消</Button>
            <Button kind="danger" busy={isBusy} onClick={() => void confirm()}>
              {texts.button}
            </Button>
          </>
        }
      >
        <p className={styles.quoted}>{question?.session.title}</p>
        <p>{texts.text}</p>
      </Dialog>
    </>
  );
}

interface RowProps {
  session: Session;
  isCurrent: boolean;
  onOpen: (session: string) => void;
  onAsk: (what: Question["what"]) => void;
}

function Row({ session, isCurrent, onOpen, onAsk }: RowProps) {
  const { session_id: id, title, updated_at: time, message_count: count } = session;
  return (
    <li data-current={isCurrent}>
      <button
        type="button"
        className={styles.session}
        aria-current={isCurrent ? "page" : undefined}
        onClick={() => onOpen(id)}
      >
        <span className={styles.sessionTitle} data-part="title">
          {title}
        </span>
        <span className="w-note">
          {shortTime(time)} · {count} 条
        </span>
      </button>
      {(["clear", "delete"] as const).map((what) => (
        <button
          key={what}
          type="button"
          className="w-icon-button"
          aria-label={`${TEXTS[what].title}：${title}`}
          title={TEXTS[what].title}
          onClick={() => onAsk(what)}
        >
          <span aria-hidden="true">{TEXTS[what].sign}</span>
        </button>
      ))}
    </li>
  );
}
