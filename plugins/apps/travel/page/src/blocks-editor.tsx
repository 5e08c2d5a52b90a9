// The editor of blocks. Edits are saved after a delay.
import { Button, SelectField, TextField, useConnection } from "@wattle/page";
import { memo, useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import { api, BLOCK_TYPES, type Block, type BlockType, type StateView } from "./api.ts";
import { type SaveState, useAutosave } from "./autosave.ts";
import {
  blockOf,
  blocksOf,
  type Draft,
  draftOf,
  MOST_BLOCKS,
  moved,
  newDraft,
  problemsOf,
  TYPE_NAMES,
} from "./blocks.ts";
import styles from "./page.module.css";
import * as unsaved from "./unsaved.ts";

const SAVE_NAMES: Record<SaveState | "invalid", string> = {
  saved: "已保存",
  changed: "有未保存的修改",
  saving: "正在保存…",
  failed: "保存失败",
  invalid: "有错误，未保存",
};

interface BlocksEditorProps {
  session: string;
  /** The blocks that the server has stored. */
  stored: readonly Block[];
  /** Called with true while there are unsaved edits. */
  onEditing: (isEditing: boolean) => void;
  /** Called after each save. */
  onSaved: (state: StateView) => void;
}

/** Returns equal texts for blocks that are equal in an editor. */
function versionOf(blocks: readonly Block[]): string {
  return JSON.stringify(blocks.map((block) => blockOf(draftOf(block))));
}

export function BlocksEditor({ session, stored, onEditing, onSaved }: BlocksEditorProps) {
  const [left] = useState(() => unsaved.read(session));
  const [drafts, setDrafts] = useState(() => (left ?? stored).map(draftOf));
  const known = useRef(versionOf(stored));
  const save = async (blocks: Block[]) => {
    const state = await api.saveBlocks(session, blocks);
    known.current = versionOf(blocks);
    unsaved.drop(session, blocks);
    onSaved(state);
  };
  const { state: saveState, setEdit, flush } = useAutosave(session, save, left);
  const isInvalid = drafts.some((draft) => Object.keys(problemsOf(draft)).length > 0);
  const isEditing = isInvalid || saveState !== "saved";
  useEffect(() => onEditing(isEditing), [isEditing, onEditing]);

  // Blocks of a run, or of another tab, replace blocks without unsaved edits.
  useEffect(() => {
    const version = versionOf(stored);
    if (isEditing || version === known.current) return;
    known.current = version;
    setDrafts(stored.map(draftOf));
  }, [stored, isEditing]);
  useLeaving(flush);
  useConnection(flush);

  const edit = useCallback(
    (next: (drafts: Draft[]) => Draft[]) => {
      setDrafts((now) => {
        const drafts = next(now);
        const blocks = blocksOf(drafts);
        // Deferred, because React may call this twice, and states must be set outside of it.
        queueMicrotask(() => {
          if (blocks !== undefined) unsaved.keep(session, blocks);
          setEdit(blocks);
        });
        return drafts;
      });
    },
    [setEdit, session],
  );
  return (
    <div className={styles.blocks}>
      <div className={styles.bar}>
        <SaveNote state={isInvalid ? "invalid" : saveState} onRetry={flush} />
        <Button
          disabled={drafts.length >= MOST_BLOCKS}
          onClick={() => edit((now) => [...now, newDraft()])}
        >
          添加内容块
        </Button>
      </div>
      <ol>
        {drafts.map((draft, at) => (
          <BlockFields
            key={draft.block_id}
            draft={draft}
            at={at}
            isLast={at === drafts.length - 1}
            onEdit={edit}
          />
        ))}
      </ol>
    </div>
  );
}

/** Calls `onLeave` when the page is hidden or left. */
function useLeaving(onLeave: () => void): void {
  const leave = useEffectEvent(onLeave);
  useEffect(() => {
    const hide = () => {
      if (document.visibilityState === "hidden") leave();
    };
    addEventListener("pagehide", leave);
    document.addEventListener("visibilitychange", hide);
    return () => {
      removeEventListener("pagehide", leave);
      document.removeEventListener("visibilitychange", hide);
      leave();
    };
  }, []);
}

function SaveNote(props: { state: SaveState | "invalid"; onRetry: () => void }) {
  return (
    <div className={styles.save} data-part="save" data-state={props.state}>
      <span role="status">{SAVE_NAMES[props.state]}</span>
      {props.state === "failed" && <Button onClick={props.onRetry}>重试</Button>}
    </div>
  );
}

interface BlockFieldsProps {
  draft: Draft;
  at: number;
  isLast: boolean;
  onEdit: (next: (drafts: Draft[]) => Draft[]) => void;
}

const TYPE_OPTIONS = BLOCK_TYPES.map((type) => ({ value: type, name: TYPE_NAMES[type] }));

const BlockFields = memo(function BlockFields({ draft, at, isLast, onEdit }: BlockFieldsProps) {
  const problems = problemsOf(draft);
  const set = (change: Partial<Draft>) =>
    onEdit((drafts) =>
      drafts.map((one) => (one.block_id === draft.block_id ? { ...one, ...change } : one)),
    );
  const name = `内容块 ${at + 1}`;
  return (
    <li className={styles.block} aria-label={name}>
      <div className={styles.blockHead}>
        <h3>{name}</h3>
        <div className="w-actions">
          <Button
            aria-label={`上移${name}`}
            disabled={at === 0}
            onClick={() => onEdit((drafts) => moved(drafts, at, at - 1))}
          >
            ↑
          </Button>
          <Button
            aria-label={`下移${name}`}
            disabled={isLast}
            onClick={() => onEdit((drafts) => moved(drafts, at, at + 1))}
          >
            ↓
          </Button>
          <Button
            kind="danger"
            aria-label={`删除${name}`}
            onClick={() => onEdit((drafts) => drafts.filter((_, index) => index !== at))}
          >
            删除
          </Button>
        </div>
      </div>
      <div className={styles.fields}>
        <TextField
          label="标题"
          value={draft.title}
          error={problems.title}
          onChange={(title) => set({ title })}
        />
        <SelectField
          label="类型"
          value={draft.type}
          options={TYPE_OPTIONS}
          onChange={(type) => set({ type: type as BlockType })}
        />
      </div>
      <TextField
        label="描述"
        rows={3}
        value={draft.description}
        error={problems.description}
        onChange={(description) => set({ description })}
      />
      <div className={styles.fields}>
        <TextField
          label="纬度"
          inputMode="decimal"
          value={draft.lat}
          error={problems.lat}
          onChange={(lat) => set({ lat })}
        />
        <TextField
          label="经度"
          inputMode="decimal"
          value={draft.lng}
          error={problems.lng}
          onChange={(lng) => set({ lng })}
        />
        <TextField label="标签（逗号分隔）" value={draft.tags} onChange={(tags) => set({ tags })} />
      </div>
    </li>
  );
});
