// An open session: the guide in the middle, the conversation on the right. A narrow screen shows
// one of the two.
import { Button, copyText, navigate, Segments, Shell, toast, useChange } from "@wattle/page";
import { useState } from "react";
import type { WholeSession } from "./api.ts";
import { BlocksEditor } from "./blocks-editor.tsx";
import { ChatPanel } from "./chat-panel.tsx";
import { useConversation } from "./conversation.ts";
import styles from "./page.module.css";
import { editable, pageCall } from "./parts.ts";
import { Preview } from "./preview.tsx";
import { PanelHandle, usePanelWidth } from "./resize.tsx";
import { sessionAddress } from "./route.ts";

type View = "blocks" | "html";
type Side = "guide" | "chat";

interface WorkspaceProps {
  loaded: WholeSession;
  initial: string | undefined;
}

export function Workspace({ loaded, initial }: WorkspaceProps) {
  const conversation = useConversation(loaded, initial);
  const { session, messages } = conversation;
  const { state } = session;
  const [width, setWidth] = usePanelWidth();
  const [side, setSide] = useState<Side>(loaded.state.handbookHtml ? "guide" : "chat");
  const [isEditing, setEditing] = useState(false);
  const found = editable(messages);
  // The stored state has the edits, but may have been read before the tool ended.
  const isNewer = found !== undefined && found.done > conversation.settled;
  const current = isNewer ? found.blocks : (state.blocks ?? found?.blocks);
  // Before there are coordinates, a run would overwrite edits.
  const blocks = found !== undefined || !conversation.isBusy ? current : undefined;
  const hasPage = state.handbookHtml !== null;
  const [view, setView] = useView(hasPage, found?.call, pageCall(messages), isEditing, () =>
    setSide("guide"),
  );
  const open = (next: View) => {
    setView(next);
    setSide("guide");
  };
  return (
    <Shell
      title={session.title}
      tab={`${session.title} · 旅行手册`}
      layout="fixed"
      actions={
        <>
          <Button onClick={() => navigate(document.baseURI)}>新建</Button>
          <Button onClick={() => void share(session.id)}>Share</Button>
        </>
      }
    >
      <div className={styles.sides}>
        <Segments
          label="显示"
          value={side}
          onChange={setSide}
          options={[
            { value: "guide", name: "手册" },
            { value: "chat", name: "对话" },
          ]}
        />
      </div>
      <div className={styles.work} data-side={side} style={{ "--panel": `${width}px` } as object}>
        <section className={styles.guide} aria-label="手册">
          <div className={styles.bar}>
            <Segments
              label="手册视图"
              value={view}
              onChange={setView}
              options={[
                { value: "blocks", name: "Blocks" },
                { value: "html", name: "HTML" },
              ]}
            />
          </div>
          <div className={styles.view} hidden={view !== "blocks"}>
            {blocks ? (
              <BlocksEditor
                session={session.id}
                stored={blocks}
                onEditing={setEditing}
                onSaved={conversation.onSaved}
              />
            ) : (
              <p className={styles.empty}>内容块生成后会显示在这里。</p>
            )}
          </div>
          <div className={styles.view} hidden={view !== "html"}>
            <Preview session={session} state={state} />
          </div>
        </section>
        <PanelHandle width={width} onChange={setWidth} />
        <ChatPanel conversation={conversation} onOpen={open} />
      </div>
    </Shell>
  );
}

/**
 * Returns the view in the middle. A new editable output opens the blocks, and a new page is shown
 * unless the user has unsaved edits.
 */
function useView(
  hasPage: boolean,
  blocksCall: string | undefined,
  page: string | undefined,
  isEditing: boolean,
  onOpen: () => void,
): [View, (view: View) => void] {
  const [view, setView] = useState<View>("html");
  const openBlocks = () => {
    setView("blocks");
    onOpen();
  };
  useChange(blocksCall, openBlocks, hasPage ? blocksCall : null);
  useChange(page, () => {
    if (!isEditing) setView("html");
  });
  return [view, setView];
}

async function share(id: string): Promise<void> {
  const link = sessionAddress(id);
  try {
    await copyText(link);
    toast("链接已复制", "ok");
  } catch {
    toast(`复制失败，请手动复制：${link}`, "error");
  }
}
