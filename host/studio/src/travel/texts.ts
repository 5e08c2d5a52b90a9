// The texts of forks and comparisons, and of what else changes a thread.
import { countText } from "../part/amount.ts";
import type { Relation } from "./align.ts";

export const FORK = {
  atCall: "Fork with another answer",
  atCheckpoint: "Fork from this checkpoint",
  callNote:
    "A new run continues from this call as if it had returned what you enter. What was done before it is not done again.",
  fixed:
    "A fork cannot replace the result of this call: the host takes another result only for models, images, tools, HTTP, SQL queries, clocks and random numbers.",
  checkpointNote:
    "A new run continues from this checkpoint. Without an input, the nodes that ran next run again.",
  endNote: "No node runs next at this checkpoint, so the fork needs an input.",
  outcome: "The call",
  answers: "returns",
  fails: "fails",
  answer: "Result in the fork",
  failure: "Failure in the fork",
  input: "Input (optional)",
  inputNeeded: "Input",
  copy: "Fork in a copy, so that this thread stays as it is",
  tooLong: "The result is too long to be edited here. Enter another one.",
  missing: "Enter a JSON value.",
  refused: (reason: string) => `The fork was not started: ${reason}`,
  start: "Start the fork",
  starting: "Starting…",
};

export const COMPARE = {
  title: "Compare two runs",
  none: "The address names no two runs. Open a run and choose another one to compare it with, or name them as ?left=<thread>~<run>&right=<thread>~<run>.",
  sides: { left: "Left run", right: "Right run" },
  run: (run: string) => `Run ${run}`,
  thread: (thread: string) => `Thread ${thread}`,
  notFound: "There is no such run, or it belongs to another thread or tenant.",
  reading: "Reading the logs…",
  failed: "The run failed",
  forkedAtCall: (call: string, seq: number) => `Fork at call ${call} (event ${countText(seq)})`,
  forkedAtCheckpoint: (checkpoint: number) => `Fork from checkpoint ${countText(checkpoint)}`,
  same: "The runs do not differ, as far as their events say.",
  parting: (name: string) => `The runs part at ${name}.`,
  apart: (name: string) =>
    `The runs have no common beginning: they part at the first step, at ${name}.`,
  otherGraphs: (left: string, right: string) =>
    `The runs are of different graphs, ${left} and ${right}. Rows with the same names are paired.`,
  showCommon: (count: number) =>
    count === 1 ? "Show the row before" : `Show the ${countText(count)} rows before`,
  hideCommon: "Hide what is the same before",
  table: "The rows of both runs",
  relation: "Difference",
  relations: {
    same: "same",
    changed: "differs",
    left: "only left",
    right: "only right",
    carried: "before the fork",
  } as const satisfies Record<Relation, string>,
  absent: "This run has no such row.",
  carried: "This is before the fork: the fork continues from it, and did not do it again.",
  difference: "Difference",
  requests: "Difference of the requests",
  results: "Difference of the results",
  states: "Compare the end states",
  endStates: "Difference of the end states",
  noCheckpoint: "The run has made no checkpoint.",
  goesOn: "The run has not ended.",
  statesNote:
    "What was removed is in the left state only, and what was added in the right one. Ids of messages are not compared.",
  direction: "(from the left run to the right run)",
  unseen: "The requests differ only in a part that the log does not have.",
};

/** The texts of the choice of a run; also those of its lists. */
export const CHOOSE = {
  note: "Choose the run that is shown on the right.",
  id: "Id of the other run",
  compare: "Compare",
  finding: "Reading…",
  missing: "Enter the id of a run.",
  itself: "This is the run itself.",
  noRun: "There is no such run, or it belongs to another tenant.",
  lists: "Listed runs",
  ofThread: "Of this thread",
  ofGraph: "Of the same graph",
  list: "Runs to compare with, newest request first",
  reading: "Reading the runs…",
  searching: "Searching older runs…",
  stopped: "Not all older runs were searched.",
  none: "There is no other run.",
  run: "Run",
  thread: "Thread",
  status: "Status",
  requested: "Requested",
};

/** The texts of everything that changes a thread. */
export const ACTION = {
  conflict: (reason: string) =>
    `The host refused this, because the thread is not in the state for it: ${reason}. What is shown was read again.`,
};

export const CONTROL = {
  actions: "Actions",
  toActions: "Go to the actions",
  resume: "Resume",
  retry: "Retry what failed",
  answer: (count: number) =>
    count === 1 ? "Answer the pending interrupt" : `Answer ${countText(count)} pending interrupts`,
  drain: "Drain",
  drainNote: "The run stops before its next superstep. A resume continues it.",
  drained: "The run stops before its next superstep.",
  cancel: "Cancel",
  cancelTitle: "Cancel the run?",
  cancelNow: "Cancel the run",
  cancelNote:
    "The run ends at once, and the work of its current superstep may be lost. Calls that wait for a person end, too. To stop it between two supersteps, drain it.",
  cancelPendingNote: "The run waits for its turn. Once it is cancelled, it never starts.",
  cancelled: "The run was cancelled.",
  doubtTitle: "Make calls again?",
  doubtNote: (count: number) =>
    `${count === 1 ? "One call is" : `${countText(count)} calls are`} in doubt and not settled: the host made ${count === 1 ? "it" : "them"} and does not know whether ${count === 1 ? "it" : "they"} took effect. If you go on, ${count === 1 ? "it is" : "they are"} made again. The pages of the thread and of the run list what is in doubt.`,
  repeat: "Make the calls again",
};

export const SETTLE = {
  title: "Calls in doubt",
  note: "The host made these calls and has no result. Each may have had its effect, or not. Look at the other service first, then decide. A decision takes effect when the thread is resumed; a call without one is made again.",
  waiting:
    "A call that waits for a person is listed, too. A decision about it takes effect when its interrupt is answered, in place of the answer.",
  function: "Function",
  node: "Node",
  task: "Task",
  number: "Number of the call",
  started: "Started",
  event: "In the timeline",
  inTimeline: (seq: number) => `Event ${seq}`,
  undecided: "Not settled",
  decided: {
    answer: "Settled: it returned the given result",
    fail: "Settled: it failed",
    retry: "Settled: it is made again",
  },
  decide: "Settle",
  decideAgain: "Settle differently",
  form: "Decision",
  kinds: { answer: "It returned", fail: "It failed", retry: "Make it again" },
  kindNotes: {
    answer: "The call took effect. The node gets the result that you enter.",
    fail: "The node gets the failure in-doubt.",
    retry: "The call did not take effect, or may take effect twice. The host makes it again.",
  },
  result: "Result of the call",
  missing: "Enter a JSON value.",
  settle: "Settle the call",
  settled: "The call is settled. Resume the thread to go on.",
};

export const MIGRATE = {
  open: "Migrate to the current code…",
  title: "Migrate to the current code",
  close: "Close",
  check: "Check again",
  checking: "Checking what a migration changes…",
  migrate: "Migrate the thread",
  migrated: (digest: string) => `The thread uses version ${digest} now.`,
  current: "The thread uses the current code already.",
  impossible: (count: number) =>
    count === 1
      ? "The thread cannot be migrated: there is an obstacle."
      : `The thread cannot be migrated: there are ${countText(count)} obstacles.`,
  unchanged: "The state stays as it is. A migrated thread cannot go back to its former code.",
  possible: "This changes what is listed. A migrated thread cannot go back to its former code.",
  from: "Version of the thread",
  to: "Current version",
  obstacles: "Obstacles",
  changes: "Changes",
  channelKinds: {
    channel_added: (name: string) => `Channel ${name} is added with its default.`,
    channel_dropped: (name: string) => `The value of channel ${name} is dropped.`,
    value_set: (name: string) => `Channel ${name} gets the value that you entered.`,
  },
  restarted: (name: string, interrupts: number) => {
    const start = `Node ${name} starts from the beginning. What it did since the checkpoint is discarded.`;
    if (interrupts === 0) return start;
    return interrupts === 1
      ? `${start} Its pending interrupt is dropped until the node raises it again.`
      : `${start} Its ${countText(interrupts)} pending interrupts are dropped until the node raises them again.`;
  },
  channelGone: (name: string) => `The current graph has no channel ${name}, which has a value.`,
  valueInvalid: (name: string, message: string) =>
    `The value of channel ${name} does not fit: ${message}`,
  nodeGone: (name: string) => `Node ${name} runs next, and the current graph does not have it.`,
  barrierGone: (barrier: string) =>
    `Barrier ${barrier} was reached in part, and the current graph does not have it.`,
  drop: "Drop the values of channels that the current graph does not have",
  value: (name: string) => `New value of channel ${name}`,
  noValue: "A value cannot be sent.",
};

export const EDIT = {
  open: "Edit the state",
  opening: "Reading the state and the graph…",
  form: "Edit of the state",
  note: (checkpoint: number) =>
    `The edit makes a new checkpoint after checkpoint ${countText(checkpoint)}, as if a node had finished with these values.`,
  noGraph:
    "The host does not have the graph of this checkpoint, so the values have no forms, and channels without a value are not listed.",
  author: "Write as",
  choose: "Choose a node…",
  asInput: "an input",
  asEnd: "the end of the graph",
  nodeNote: "The edges and branches of the node decide what runs next.",
  inputNote: "The entry nodes run next.",
  endNote: "Nothing runs next, and nothing is written.",
  channels: "Channels to write",
  mode: "How the value is written",
  replace: "Replace the value",
  combine: (reducer: string) => `Combine with it (${reducer})`,
  tooLong: "The value is too long to be edited here. Enter another one.",
  noAuthor: "Choose the node as which the edit writes.",
  noChannel: "Choose at least one channel.",
  problems: "Some values do not fit their channels.",
  sendKeys: "Review the edit",
  review: "Review the edit",
  title: "Write the edit?",
  write: "Write the edit",
  reviewNote: (checkpoint: number, author: string) =>
    `A new checkpoint follows checkpoint ${countText(checkpoint)}, written as ${author}.`,
  replaces: "replaced",
  combines: "combined by the reducer",
  discards:
    "Pending work of the graph is discarded: interrupts, failures, and finished tasks of a superstep that is not complete.",
  notNewest: (checkpoint: number, newest: number) =>
    `Checkpoint ${countText(checkpoint)} is not the newest one. The thread continues from the edit, and what happened until checkpoint ${countText(newest)} stays in the history only.`,
  made: (checkpoint: number) =>
    `The edit made checkpoint ${countText(checkpoint)}. Resume the thread to go on from there.`,
};
