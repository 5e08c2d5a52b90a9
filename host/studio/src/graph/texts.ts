// The texts of the views of graphs.
import { countText } from "../part/amount.ts";
import type { Item, LineKind } from "./definition.ts";

/** The state of one task, and of several that are in the same one. */
function tasksText(count: number, status: string): string {
  return `${countText(count)} tasks ${status}`;
}

export const TEXTS = {
  title: (app: string, graph: string) => `Graph ${graph} of ${app}`,
  picture: (graph: string) => `Nodes of the graph ${graph}`,
  back: (app: string) => `App ${app}`,
  reading: "Reading the graph…",
  notFound: "The host has no such graph, or no such version of it.",
  try: "Try in the playground",
  version: "Version",
  current: (version: string) => `${version} (current)`,
  against: "Compare with",
  nothing: "Nothing",
  tooLarge: (most: number) => `The graph has more than ${countText(most)} items to draw.`,
  gone: "The host does not have the version of this run any more. This is the current one.",
  missing: (graph: string, version: string | undefined) => {
    const of = version === undefined ? "" : ` (version ${version})`;
    return `The host does not have the nested graph ${graph}${of}, so it is not shown.`;
  },
  noGraph: "The run has no graph yet.",
  zoomIn: "Larger",
  zoomOut: "Smaller",
  fit: "Fit",
  openAll: "Open nested graphs",
  closeAll: "Close nested graphs",
  open: (node: string) => `Open the graph of ${node}`,
  close: (node: string) => `Close the graph of ${node}`,
  shown: (first: number, last: number) => `${countText(first)}–${countText(last)} shown`,
  previous: (node: string) => `Show earlier tasks of ${node}`,
  next: (node: string) => `Show later tasks of ${node}`,
  more: (count: number) => `${countText(count)} more tasks`,
  start: "start",
  end: "end",
  otherwise: "otherwise",
  status: (status: string) => status,
  running: (running: number, tasks: number) =>
    `${countText(running)} of ${tasksText(tasks, "running")}`,
  tasks: tasksText,
  keys: "Move between nodes",
  keyOpen: "Open or close the graph of the node",
  keyPrevious: "Show the graphs of earlier parallel tasks of the node",
  keyNext: "Show the graphs of later parallel tasks of the node",
  keySelect: "Show the node",
  differences: "Differences",
  same: "The graph and the code of its nodes are the same in both versions.",
  marks: { added: "Added", removed: "Removed", changed: "Changed", code: "Code changed" },
  line: (from: string, to: string) => `${from} → ${to}`,
};

/** Returns the name of an item for users. */
export function labelOf({ kind, name }: Item): string {
  if (kind === "start") return TEXTS.start;
  return kind === "end" ? TEXTS.end : name;
}

/** The names of lines, in the list of differences. */
export const LINES: Readonly<Record<LineKind, string>> = {
  edge: "edge",
  case: "case",
  goto: "goto",
  error: "error handler",
};

/** The texts of the panel. */
export const PANEL = {
  kind: "Kind",
  kinds: {
    start: "beginning of the graph",
    end: "end of a path",
    node: "function of a plugin",
    subgraph: "subgraph",
    branch: "branch",
  },
  plugin: "Plugin",
  function: "Function",
  graph: "Graph",
  tasks: "Tasks",
  showTask: "Show graph",
  showTaskOf: (task: string) => `Show the graph of ${task}`,
  attempt: (status: string) => `Task, ${status}`,
  cases: "Cases",
  taken: (count: number) => (count === 1 ? "taken once" : `taken ${countText(count)} times`),
  settings: "Definition",
  changes: "Changes",
  code: (before: string, after: string) => `The component is another one: ${before} → ${after}.`,
  inside: "The graph of the node has changes. Open it in the picture to see them.",
  older: "Version before",
  before: (title: string) => `${title} before`,
  input: "Input schema",
  output: "Output schema",
  context: "Schema of the run context",
  channels: "Channels",
  reducer: (reducer: string) => `reducer ${reducer}`,
};
