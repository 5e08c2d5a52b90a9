// The texts of checkpoints and states.
import { countText } from "../part/amount.ts";

export const TEXTS = {
  title: (checkpoint: string) => `Checkpoint ${checkpoint}`,
  thread: (thread: string) => `Thread ${thread}`,
  content: "Difference and state",
  reading: "Reading the checkpoint…",
  notFound: "There is no such checkpoint, or it was pruned, or it belongs to another tenant.",
  checkpoint: "Checkpoint",
  checkpoints: "Checkpoints of the run",
  noCheckpoints: "The run has no checkpoints in this graph.",
  step: (source: string, step: number) =>
    source === "loop" ? `After superstep ${countText(Math.max(0, step - 1))}` : sourceText(source),
  changed: "Changed channels",
  next: "Next nodes",
  writers: "Written by",
  time: "Time",
  run: "Run",
  version: "Version",
  namespace: "Subgraph",
  parent: "Checkpoint before",
  source: "Origin",
  sources: {
    input: "Input",
    loop: "Superstep",
    update: "Edit",
    fork: "Fork",
  } as Readonly<Record<string, string>>,
  graph: "Graph",
  root: "Root graph",
  difference: "Difference",
  against: (checkpoint: number | string) => `Difference to checkpoint ${checkpoint}`,
  first: "There is no checkpoint before, so all values are new.",
  readingOther: "Reading the other checkpoint…",
  gone: (checkpoint: number | string) =>
    `Checkpoint ${checkpoint} cannot be compared: it was pruned, or belongs to another graph.`,
  same: "The states are the same.",
  state: "State",
  metadata: "Metadata",
  interrupts: "Pending interrupts",
  tasks: "Tasks",
  compare: "Compare with checkpoint",
  compareNow: "Compare",
  number: "Enter the number of a checkpoint.",
  open: "Open the checkpoint",
};

function sourceText(source: string): string {
  return TEXTS.sources[source] ?? source;
}
