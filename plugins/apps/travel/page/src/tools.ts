// The tools of a guide, as users see them.
import { fieldsOf } from "@wattle/page";
import { isBlocks, type ToolOutputs } from "./api.ts";

/** The outputs of tools by name. */
type Outputs = { [T in keyof ToolOutputs]-?: NonNullable<ToolOutputs[T]> };

type Tool = keyof Outputs;

/** The tool whose output opens the editor. */
const EDITABLE = "resolve_spot_coordinates" satisfies Tool;

/** The tool whose output is the page. */
export const HTML_TOOL = "generate_handbook_html" satisfies Tool;

const TITLES: Record<Tool, string> = {
  parse_youtube_input: "识别视频链接",
  crawl_youtube_videos: "抓取视频信息",
  build_travel_blocks: "整理内容块",
  resolve_spot_coordinates: "解析景点坐标",
  search_image: "搜索配图",
  generate_image: "生成配图",
  generate_handbook_html: "生成手册页面",
};

function isTool(name: string): name is Tool {
  return Object.hasOwn(TITLES, name);
}

export function titleOf(name: string): string {
  return isTool(name) ? TITLES[name] : name;
}

/** Returns an output by its type; one that is no object has no fields. */
function outputOf<T extends Tool>(output: unknown): Outputs[T] {
  const fields: unknown = fieldsOf(output);
  return fields as Outputs[T];
}

function count(value: number | undefined): string {
  return typeof value === "number" ? value.toLocaleString("zh-CN") : "?";
}

const SUMMARIES: { [T in Tool]: (output: Outputs[T]) => string } = {
  parse_youtube_input: (it) => `找到 ${count(it.count)} 个视频链接`,
  crawl_youtube_videos: (it) => {
    const title = it.videos?.[0]?.title;
    return `已抓取 ${count(it.count)} 个视频${title ? `：${title}` : ""}`;
  },
  build_travel_blocks: (it) =>
    `${count(it.blockCount)} 个内容块，其中景点 ${count(it.spotCount)} 个`,
  resolve_spot_coordinates: (it) =>
    `已定位 ${count(it.resolved_count)} 个景点，未找到 ${count(it.unresolved_count)} 个`,
  search_image: (it) => `已准备 ${count(it.image_count)} 张图片（${it.mode}）`,
  generate_image: (it) => `已生成 ${count(it.image_count)} 张图片（${it.mode}）`,
  generate_handbook_html: (it) =>
    `《${it.title ?? "旅行手册"}》：${count(it.block_count)} 个内容块，${count(it.matched_image_count)} 张配图`,
};

function summarize<T extends Tool>(tool: T, output: unknown): string {
  return SUMMARIES[tool](outputOf<T>(output));
}

/** Returns one line about the output of a tool. */
export function summaryOf(name: string, output: unknown): string | undefined {
  return output === undefined || !isTool(name) ? undefined : summarize(name, output);
}

/** Fields with long texts. A card shows their length, because users do not read them as JSON. */
const LONG_KEYS = new Set(["html", "subtitles", "description"]);
const LONG_CHARS = 400;

/** Returns a document for a card, which has the lengths of long texts in their place. */
export function withoutLongTexts(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (key, inner: unknown) => {
      const isLong = typeof inner === "string" && inner.length > LONG_CHARS;
      if (isLong && LONG_KEYS.has(key)) return `（${inner.length.toLocaleString("zh-CN")} 字符）`;
      return inner;
    }),
  );
}

/** Returns the blocks in an output of the editable tool. */
export function editableBlocks(name: string, output: unknown) {
  const { blocks } = outputOf<typeof EDITABLE>(output);
  return name === EDITABLE && isBlocks(blocks) ? blocks : undefined;
}
