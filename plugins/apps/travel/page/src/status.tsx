// Status and time of a session.
import type { SessionView, Status } from "./api.ts";
import styles from "./page.module.css";

export const STATUS_NAMES: Record<Status, string> = {
  IDLE: "未开始",
  RUNNING: "进行中",
  COMPLETED: "已完成",
  ERROR: "出错",
  CANCELLED: "已停止",
};

const TIMES = new Intl.DateTimeFormat("zh-CN", { dateStyle: "medium", timeStyle: "short" });

export function StatusMark({ status }: { status: Status }) {
  return (
    <span className={styles.status} data-status={status}>
      {STATUS_NAMES[status]}
    </span>
  );
}

export function FinalTime({ session: { finalTime } }: { session: SessionView }) {
  return <time dateTime={finalTime}>{TIMES.format(new Date(finalTime))}</time>;
}
