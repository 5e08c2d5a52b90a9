// Threads and runs of the plugin's own app: start, resume, cancel, read and list them.

export {
  type Called,
  type CallStarted,
  type Custom,
  completionOf,
  type Delta,
  type Event,
  type EventBase,
  isModelCall,
  isToolCall,
  type OtherEvent,
  type RunEnded,
  type RunStarted,
  readEvent,
  type Streamed,
  type TaskFinished,
} from "./event.ts";
export {
  type ThreadPage,
  type ThreadSearch,
  type ThreadSearchOptions,
  type ThreadSummary,
  threads,
  updateThread,
} from "./list.ts";
export { allEvents, byRun, RunLog } from "./log.ts";
export { type ResumeOutcome, resumeOnce } from "./once.ts";
export {
  cancel,
  cancelAndWait,
  deleteThread,
  deleteThreadIfAny,
  events,
  find,
  type OnFailure,
  PAGE_EVENTS,
  type Resume,
  type ResumeOptions,
  type RunRef,
  resume,
  resumeAndWait,
  type Start,
  type StartOptions,
  start,
  startAndWait,
  thread,
  wait,
} from "./request.ts";
export {
  EndedRun,
  type EndedRunFields,
  Interrupt,
  type Outcome,
  Thread,
  type ThreadFields,
} from "./result.ts";
