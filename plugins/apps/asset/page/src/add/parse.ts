// Parses an input into a review, through the app's stream. Recovers from a lost connection.
import { ApiError } from "@wattle/page";
import { connected, isAway, lost } from "@wattle/page/connection";
import { streams } from "@wattle/page/sse";
import { type Input, type paths, type ReviewEvent, readThread, type StreamEvent } from "../api.ts";

const stream = streams<paths>();

/** The error of a thread that has no review: its run has failed, or its rows are stored. */
export class EndedThread extends ApiError {}

/** Progress of a node. */
export interface Step {
  node: string;
  message: string;
  isDone: boolean;
}

interface Watch {
  onThread: (threadId: string) => void;
  onSteps: (steps: readonly Step[]) => void;
}

/** Returns the newest step of each node, in the order in which the nodes started. */
export function withStep(steps: readonly Step[], step: Step): readonly Step[] {
  const at = steps.findIndex(({ node }) => node === step.node);
  return at < 0 ? [...steps, step] : steps.with(at, step);
}

/** Sends an input and reads the stream of the run until its review. */
export async function parse(input: Input, { onThread, onSteps }: Watch): Promise<ReviewEvent> {
  let steps: readonly Step[] = [];
  let threadId: string | undefined;
  let review: ReviewEvent | undefined;
  let failure: ApiError | undefined;
  const apply = ({ event, data }: StreamEvent) => {
    if (event === "start") {
      threadId = data.threadId;
      onThread(threadId);
    } else if (event === "node_start" || event === "node_end") {
      const { node, message } = data;
      steps = withStep(steps, { node, message, isDone: event === "node_end" });
      onSteps(steps);
    } else if (event === "review") {
      review = data;
    } else if (event === "error") {
      failure = new EndedThread("http", data.error, { status: data.status });
    }
  };
  try {
    await stream("/api/ai/asset-graph/stream", {
      body: input,
      ends: ["review", "error"],
      onEvent: apply,
    });
  } catch (error) {
    // The run continues without the stream, and the thread has its result.
    const isCut = error instanceof ApiError && error.kind === "network";
    if (!isCut || threadId === undefined) throw error;
    return reread(threadId);
  }
  if (failure) throw failure;
  if (review === undefined) throw new ApiError("format", "服务的回答不完整，请重试。");
  return review;
}

/** Reads the review of a thread once the server is reachable and ready. */
async function reread(threadId: string): Promise<ReviewEvent> {
  for (;;) {
    await connected();
    try {
      const { reviewPayload } = await readThread(threadId);
      if (reviewPayload) return { threadId, reviewPayload };
      throw new EndedThread("format", "该记录已经添加。");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // A host that starts or stops is waited for like one that is not reachable.
      if (isAway(error)) lost();
      else if (error.kind !== "network") throw error;
    }
  }
}
