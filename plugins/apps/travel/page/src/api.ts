// The endpoints of the app.
import { request } from "@wattle/page";
import type { UIMessage } from "ai";
import type {
  Block,
  SessionList,
  SessionView,
  StateView,
  WholeSession as StoredSession,
} from "./schema.d.ts";

export type { Block, SessionView, StateView, Status } from "./schema.d.ts";

export type BlockType = Block["type"];

export const BLOCK_TYPES: readonly BlockType[] = ["food", "spot", "transport", "shopping", "other"];

/** A session with messages of the AI SDK. */
export interface WholeSession extends Omit<StoredSession, "messages"> {
  messages: UIMessage[];
}

/** Maximum size of a body that browsers send for a closed page, with room for other requests. */
const KEEPALIVE_BYTES = 48 << 10;

const path = (id: string, what = "") => `api/sessions/${encodeURIComponent(id)}${what}`;

export const api = {
  list: () => request<SessionList>("api/sessions?limit=20"),
  create: () => request<SessionView>("api/sessions", { body: {} }),
  show: (id: string) => request<WholeSession>(path(id)),
  cancel: (id: string) => request<SessionView>(path(id, "/cancel"), { method: "POST" }),
  saveBlocks: (id: string, blocks: readonly Block[]) => {
    const body = JSON.stringify({ blocks });
    // The last edit of a user is saved also if the page is left immediately.
    const keepalive = new Blob([body]).size <= KEEPALIVE_BYTES;
    return request<StateView>(path(id, "/state"), { method: "PATCH", body, keepalive });
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
