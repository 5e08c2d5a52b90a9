// Texts for the statuses and times of sessions.
import { finalTime, type Session, type Status } from "./api.ts";

export const STATUS_NAMES: Record<Status, string> = {
  IDLE: "未开始",
  RUNNING: "进行中",
  COMPLETED: "已完成",
  ERROR: "出错",
  CANCELLED: "已停止",
};

const TIMES = new Intl.DateTimeFormat("zh-CN", { dateStyle: "medium", timeStyle: "short" });

/** Returns the time for a summary. */
export function shownTime(session: Session): string {
  return TIMES.format(new Date(finalTime(session)));
}
