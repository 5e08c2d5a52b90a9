// The endpoints of the app.
import { fieldsOf } from "@wattle/page";
import { endpoints } from "@wattle/page/endpoints";
import type { UIMessage } from "ai";
import type { Block, paths, WholeSession as StoredSession } from "./schema.d.ts";

export type {
  Block,
  ChatRequest,
  SessionView,
  StateView,
  Status,
  ToolOutputs,
} from "./schema.d.ts";

export type BlockType = Block["type"];

export const BLOCK_TYPES: readonly BlockType[] = ["food", "spot", "transport", "shopping", "other"];

/** A session with messages of the AI SDK. */
export interface WholeSession extends Omit<StoredSession, "messages"> {
  messages: UIMessage[];
}

/** Maximum size of a body that browsers send for a closed page, with room for other requests. */
const KEEPALIVE_BYTES = 48 << 10;

const call = endpoints<paths>();

export const api = {
  list: () => call("get", "/api/sessions", { query: { limit: 20 } }),
  create: () => call("post", "/api/sessions", { body: {} }),
  show: async (id: string): Promise<WholeSession> => {
    const session = await call("get", "/api/sessions/{id}", { path: { id } });
    // The AI SDK describes the parts of messages, which the document of the app leaves open.
    return { ...session, messages: session.messages as unknown[] as UIMessage[] };
  },
  cancel: (id: string) => call("post", "/api/sessions/{id}/cancel", { path: { id } }),
  saveBlocks: (id: string, blocks: Block[]) => {
    const body = { blocks };
    // The last edit of a user is saved also if the page is left immediately.
    const keepalive = new Blob([JSON.stringify(body)]).size <= KEEPALIVE_BYTES;
    return call("patch", "/api/sessions/{id}/state", { path: { id }, body, keepalive });
  },
};

/** Returns true for a list of blocks, as outputs of tools have it. */
export function isBlocks(value: unknown): value is Block[] {
  return Array.isArray(value) && value.every(isBlock);
}

function isBlock(value: unknown): boolean {
  const { block_id, type, title, description } = fieldsOf(value);
  const areTexts = [block_id, title, description].every((text) => typeof text === "string");
  return areTexts && BLOCK_TYPES.includes(type as BlockType);
}
