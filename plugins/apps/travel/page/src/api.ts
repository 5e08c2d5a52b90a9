// The endpoints of the app.
import { request } from "@wattle/page";
import type { UIMessage } from "ai";

export type Status = "IDLE" | "RUNNING" | "COMPLETED" | "ERROR" | "CANCELLED";

export const BLOCK_TYPES = ["food", "spot", "transport", "shopping", "other"] as const;
export type BlockType = (typeof BLOCK_TYPES)[number];

export interface Block {
  block_id: string;
  type: BlockType;
  title: string;
  description: string;
  location: { lat: number; lng: number } | null;
  smart_tags: string[];
}

/** A session without its messages, steps and state. */
export interface Session {
  id: string;
  title: string;
  status: Status;
  currentStep: string | null;
  failedStep: string | null;
  lastError: string | null;
  /** The time for a summary: the start of the first run, or else the creation. */
  finalTime: string;
}

/** The results of a session. */
export interface State {
  blocks: Block[] | null;
  handbookHtml: string | null;
  handbookVersion: number;
  updatedAt: string | null;
}

/** A tool call. */
export interface Step {
  toolCallId: string;
  status: "RUNNING" | "SUCCESS" | "ERROR" | "CANCELLED";
}

export interface WholeSession extends Session {
  messages: UIMessage[];
  steps: Step[];
  state: State;
}

/** Maximum size of a body that browsers send for a closed page, with room for other requests. */
const KEEPALIVE_BYTES = 48 << 10;

const path = (id: string, what = "") => `api/sessions/${encodeURIComponent(id)}${what}`;

export const api = {
  list: () => request<{ sessions: Session[] }>("api/sessions?limit=20"),
  create: () => request<Session>("api/sessions", { body: {} }),
  show: (id: string) => request<WholeSession>(path(id)),
  cancel: (id: string) => request<Session>(path(id, "/cancel"), { method: "POST" }),
  saveBlocks: (id: string, blocks: readonly Block[]) => {
    const body = JSON.stringify({ blocks });
    // The last edit of a user is saved also if the page is left immediately.
    const keepalive = new Blob([body]).size <= KEEPALIVE_BYTES;
    const headers = { "content-type": "application/json" };
    return request<State>(path(id, "/state"), { method: "PATCH", body, headers, keepalive });
  },
};

/** Returns true for a list of blocks, as outputs of tools have it. */
export function isBlocks(value: unknown): value is Block[] {
  return Array.isArray(value) && value.every(isBlock);
}

function isBlock(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const block = value as Partial<Block>;
  return (
    typeof block.block_id === "string" &&
    BLOCK_TYPES.includes(block.type as BlockType) &&
    typeof block.title === "string" &&
    typeof block.description === "string"
  );
}
