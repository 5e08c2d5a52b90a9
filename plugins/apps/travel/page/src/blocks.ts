// Blocks in the editor.
import type { Block, BlockType } from "./api.ts";

export const TYPE_NAMES: Record<BlockType, string> = {
  food: "美食",
  spot: "景点",
  transport: "交通",
  shopping: "购物",
  other: "其他",
};

/** Maximum number of blocks that the app stores. */
export const MOST_BLOCKS = 100;

const LIMITS = { lat: 90, lng: 180 } as const;
export type Axis = keyof typeof LIMITS;

/** A block with its fields as typed. */
export interface Draft {
  block_id: string;
  type: BlockType;
  title: string;
  description: string;
  lat: string;
  lng: string;
  tags: string;
}

export type Problems = Partial<Record<"title" | "description" | Axis, string>>;

export function draftOf(block: Block): Draft {
  const { block_id, type, title, description, location } = block;
  const tags = (block.smart_tags ?? []).join("，");
  const lat = location ? String(location.lat) : "";
  const lng = location ? String(location.lng) : "";
  return { block_id, type, title, description, lat, lng, tags };
}

export function newDraft(): Draft {
  const block_id = crypto.getRandomValues(new Uint32Array(2)).reduce((id, part) => {
    return id + part.toString(36).padStart(7, "0").slice(-4);
  }, "");
  return { block_id, type: "other", title: "", description: "", lat: "", lng: "", tags: "" };
}

function number(text: string): number | undefined {
  const value = Number(text);
  return text.trim() === "" || !Number.isFinite(value) ? undefined : value;
}

function axisProblem(draft: Draft, axis: Axis): string | undefined {
  const isEmpty = draft.lat.trim() === "" && draft.lng.trim() === "";
  const value = number(draft[axis]);
  if (isEmpty || (value !== undefined && Math.abs(value) <= LIMITS[axis])) return undefined;
  return `请输入 -${LIMITS[axis]} 到 ${LIMITS[axis]} 之间的数字`;
}

/** Returns the errors of a draft, by field. */
export function problemsOf(draft: Draft): Problems {
  const problems: Problems = {};
  if (draft.title.trim() === "") problems.title = "标题不能为空";
  if (draft.description.trim() === "") problems.description = "描述不能为空";
  for (const axis of ["lat", "lng"] as const) {
    const problem = axisProblem(draft, axis);
    if (problem !== undefined) problems[axis] = problem;
  }
  return problems;
}

/** Returns the block of a draft without errors. */
export function blockOf(draft: Draft): Block {
  const { block_id, type, title, description } = draft;
  const [lat, lng] = [number(draft.lat), number(draft.lng)];
  const location = lat === undefined || lng === undefined ? null : { lat, lng };
  const words = draft.tags.split(/[,，、\n]/).map((word) => word.trim());
  const smart_tags = [...new Set(words.filter((word) => word !== ""))];
  return { block_id, type, title, description, location, smart_tags };
}

/** Returns all blocks, or `undefined` while one of them has an error. */
export function blocksOf(drafts: readonly Draft[]): Block[] | undefined {
  const isBad = drafts.some((draft) => Object.keys(problemsOf(draft)).length > 0);
  return isBad ? undefined : drafts.map(blockOf);
}

/** Returns the list with the entry at `from` moved to `to`. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const rest = list.filter((_, at) => at !== from);
  const entry = list[from];
  if (entry === undefined || to < 0 || to >= list.length) return [...list];
  return [...rest.slice(0, to), entry, ...rest.slice(to)];
}
