// Rows of the audit trail for the panel.
import type { TraceEvent } from "./api.ts";

const STEPS: Record<string, string> = {
  session_create: "会话",
  understanding: "理解",
  planning: "规划",
  discovery: "发现",
  locating: "定位",
  attributes: "属性",
  executing: "执行",
  llm: "模型",
  clarification: "澄清",
  completed: "完成",
  failed: "失败",
};

export interface TrailRow {
  event: TraceEvent;
  step: string;
  /** Name of the call, and its duration. */
  method: string;
  error: string;
}

/**
 * Returns the rows of events. The row of a model response takes its name from the row of the
 * request.
 */
export function trailRows(events: readonly TraceEvent[]): TrailRow[] {
  const methods = new Map<string, string>();
  return events.map((event) => {
    const { method, purpose, call_id: id, duration_ms: took, error } = event.payload ?? {};
    const own = method ?? purpose;
    if (own && id) methods.set(id, own);
    const name = own ?? methods.get(id ?? "") ?? "";
    const time = Number.isFinite(took) ? `${took} ms` : "";
    return {
      event,
      step: STEPS[event.step] ?? event.step,
      method: [name, time].filter(Boolean).join(" · "),
      error: error ? [error.code, error.message].filter(Boolean).join("：") : "",
    };
  });
}
