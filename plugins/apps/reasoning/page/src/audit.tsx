// Audit panel: the rows of the trace endpoint, each of which expands to its payload.
import { Alert, Button, JsonView } from "@wattle/page";
import { type KeyboardEvent, type RefObject, useMemo, useState } from "react";
import type { TraceEvent } from "./api.ts";
import styles from "./page.module.css";
import { type TrailRow, trailRows } from "./trail.ts";

const EMPTY = "会话开始后，这里按顺序列出每一步和每一次模型、服务调用。";

interface AuditProps {
  events: readonly TraceEvent[];
  /** Why the last read failed. */
  problem: string | undefined;
  /** True if there is a session to read. */
  hasSession: boolean;
  onRefresh: () => void;
  onClose: () => void;
  closeButton: RefObject<HTMLButtonElement | null>;
}

export function Audit(props: AuditProps) {
  const { events, problem, hasSession, onRefresh, onClose, closeButton } = props;
  const rows = useMemo(() => trailRows(events), [events]);
  const errors = rows.filter(({ error }) => error !== "").length;
  const count = events.length > 0 ? `${events.length} 条` : "";
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  return (
    <aside id="audit" className={styles.audit} aria-label="审计" onKeyDown={onKeyDown}>
      <div className={styles.bar}>
        <h2>审计</h2>
        <p className={styles.count} role="status">
          {errors > 0 ? `${count}，${errors} 条错误` : count}
        </p>
        <Button onClick={onRefresh} disabled={!hasSession}>
          刷新
        </Button>
        <button
          ref={closeButton}
          type="button"
          className="w-button"
          aria-label="收起审计面板"
          onClick={onClose}
        >
          收起
        </button>
      </div>
      {problem !== undefined && <Alert kind="warning">无法读取审计记录：{problem}</Alert>}
      {problem === undefined && rows.length === 0 && <p className={styles.note}>{EMPTY}</p>}
      <ol className={styles.events} aria-label="审计事件">
        {rows.map((row) => (
          <EventRow key={row.event.seq} row={row} />
        ))}
      </ol>
    </aside>
  );
}

function EventRow({ row }: { row: TrailRow }) {
  const { event, step, method, error } = row;
  const [isOpen, setOpen] = useState(false);
  const time = new Date(event.created_at).toLocaleString("zh-CN");
  return (
    <li className={styles.event} data-seq={event.seq} data-step={event.step}>
      <details onToggle={(toggled) => setOpen(toggled.currentTarget.open)}>
        <summary>
          <span data-part="seq">{event.seq}</span>
          <span data-part="type">{event.event_type}</span>
          <span data-part="step">{step}</span>
          {method && <span data-part="method">{method}</span>}
          {error && <span data-part="error">{error}</span>}
        </summary>
        {isOpen && (
          <div data-part="payload">
            <p>{`${event.step} · ${time}`}</p>
            <JsonView value={event.payload} label={`${event.event_type} 的内容`} />
          </div>
        )}
      </details>
    </li>
  );
}
