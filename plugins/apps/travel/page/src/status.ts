// Words for the states and times of sessions.
import { finalTime, type Session, type Status } from "./api.ts";

export const STATUS_NAMES: Record<Status, string> = {
  IDLE: "未开始",
  RUNNING: "进行中",
  COMPLETED: "已完成",
  ERROR: "出错",
  CANCELLED: "已停止",
};

const TIMES = new Intl.DateTimeFormat("zh-CN", { dateStyle: "medium", timeStyle: "short" });

/** The time that a summary shows. */
export function shownTime(session: Session): string {
  return TIMES.format(new Date(finalTime(session)));
}
