// The texts of the playground.
import { countText } from "../part/amount.ts";

export const TEXTS = {
  title: (app: string) => `Playground of ${app}`,
  heading: "Playground",
  back: (app: string) => `App ${app}`,
  notFound: "The host has no such app.",
  noGraph: "The app has no such graph.",
  noTool: "The app has no such tool.",
  subject: "What is tried",
  part: "Part of the graph",
  whole: "The whole graph",
  graph: (name: string) => `Graph ${name}`,
  node: (name: string) => `Node ${name}`,
  tool: (name: string) => `Tool ${name}`,
  nothing: "The app has neither a graph nor a tool.",
  tenantNote: "On whose behalf it is called. The host needs one.",
  mayNot: "This key may not start runs and call tools.",
  asChat: "Chat",
  asForm: "Form",
  mode: "How the graph is tried",
  input: "Input",
  real: "The call is real, with all effects that its grants permit.",
};

export const PLUGIN = {
  back: (plugin: string) => `Plugin ${plugin}`,
  forbidden: "Only the operator of the host calls the functions of a plugin here.",
  notFound: "The host has no such plugin.",
  inApps: "Apps use this plugin. Choose the one in which it is tried.",
  apps: "Apps with this plugin",
  nothing: "The plugin has neither a node nor a tool.",
  noTool: "The plugin has no such tool.",
  noNode: "The plugin has no such node.",
  notInApp: "The app does not use the plugin.",
};

export const RUN = {
  start: "Run the graph",
  startNode: "Run this node alone",
  starting: "Starting…",
  nodeNote: "The node runs on a new thread, with this input in place of the state.",
  running: "Running…",
  waiting: "The run waits for its turn.",
  stop: "Stop",
  open: "Show the run",
  lost: "The connection was lost. It is opened again.",
  streamed: "What a model writes now",
  result: "Result",
  status: "Status",
  duration: "Duration",
  state: "State",
  failure: "The run failed",
  questions: (count: number) =>
    count === 1 ? "The run asks a question." : `The run asks ${count} questions.`,
  answer: "Answer it in the inbox",
  stopped: (next: string) => `The run stopped before ${next}.`,
};

export const CONTEXT = {
  title: "Context",
  give: "Start runs with a context, which every node gets",
  wrong: "The context is not valid.",
};

export const TOOL = {
  call: "Call the tool",
  calling: "Calling…",
  stop: "Stop",
  stopped: "The call was stopped.",
  readOnly: "It declares that it changes nothing.",
  idempotent: "It declares that a repeated call has no further effect.",
  output: "Output",
  text: "Text",
  data: "Data",
  updates: "Updates of the state",
  isError: "The tool returned this as an error.",
  failed: "The tool failed",
  empty: "The tool returned nothing.",
};

export const NODE = {
  call: "Call the node",
  calling: "Calling…",
  stop: "Stop",
  stopped: "The call was stopped.",
  note: "It needs no graph, and its outcome changes no state.",
  config: "Configuration",
  outcome: "Outcome",
  interrupts: "Interrupts",
  unanswered: "Nobody can answer them: the call has ended. Run the node in a graph for that.",
  failed: "The node failed",
  logs: "Log messages",
  moreLogs: (count: number) => `${countText(count)} more log messages are not listed.`,
};

export const CALLS = {
  title: "Host calls",
  none: "No host call was made.",
  unfinished: "not ended",
  more: (count: number) => `${countText(count)} more host calls are not listed.`,
  depth: (depth: number) => `inside of ${depth === 1 ? "a tool call" : `${depth} tool calls`}`,
  denied: "The grants do not allow this call. To allow it, add:",
  lines: "Lines to add",
};

export const CASE = {
  open: "Save as a case…",
  title: "Save as a case",
  note:
    "A case is a line of a file such as eval/cases.jsonl, for wattle eval, or tests/cases.jsonl, " +
    "for wattle test. Both are in the folder of the app.",
  reading: "Reading what the run was given…",
  gone: "The host does not have a checkpoint of the run any more.",
  givenNote:
    "The input is read from the first checkpoint, so it has the values that the reducers made of " +
    "what was sent.",
  threadNote:
    "A test of the thread executes its nodes again with later code and needs no models. " +
    "It belongs into the folder tests of the app, and has the data of the thread.",
  name: "Name",
  wrongName: "Use the letters a to z, digits and -.",
  expect: "What is expected where",
  wrongExpect: "Enter an object with at least one pointer, such as /status.",
  save: "Save the case",
  saveTest: "Save the thread as a test",
  saving: "Saving…",
};

export const CHAT = {
  label: "Message",
  placeholder: "Ask the graph something",
  conversation: "Conversation",
  again: "New conversation",
  empty: "Messages of this conversation appear here.",
  tool: (name: string) => `Result of ${name}`,
  output: "Output",
  other: "Content",
  asks: (name: string) => `Asks for ${name}`,
  arguments: "Arguments",
};
