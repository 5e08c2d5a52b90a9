// From an input to a review: the stream of the app, and what helps if it is cut.
import { ApiError } from "@wattle/page";
import { connected } from "@wattle/page/connection";
import { streamEvents } from "@wattle/page/sse";
import { type Input, type ReviewPayload, readThread, STREAM } from "../api.ts";

/** A node at work, or done. */
export interface Step {
  node: string;
  message: string;
  isDone: boolean;
}

export interface Review {
  threadId: string;
  payload: ReviewPayload;
}

interface Watch {
  onThread: (threadId: string) => void;
  onSteps: (steps: readonly Step[]) => void;
}

/** The newest step of each node, in the order in which the nodes began. */
export function withStep(steps: readonly Step[], step: Step): readonly Step[] {
  const others = steps.filter(({ node }) => node !== step.node);
  return others.length === steps.length
    ? [...steps, step]
    : steps.map((known) => (known.node === step.node ? step : known));
}

/** Sends an input and follows the run until a person is asked. */
export async function parse(input: Input, { onThread, onSteps }: Watch): Promise<Review> {
  let steps: readonly Step[] = [];
  let threadId: string | undefined;
  let review: Review | undefined;
  let failure: ApiError | undefined;
  const apply = (event: string, data: Record<string, unknown>) => {
    if (event === "start") {
      threadId = String(data.threadId);
      onThread(threadId);
    } else if (event === "node_start" || event === "node_end") {
      const { node, message } = data as { node: string; message: string };
      steps = withStep(steps, { node, message, isDone: event === "node_end" });
      onSteps(steps);
    } else if (event === "review") {
      const payload = data.reviewPayload as ReviewPayload;
      review = { threadId: String(data.threadId), payload };
    } else if (event === "error") {
      const status = Number(data.status);
      failure = new ApiError("http", String(data.error), { status });
    }
  };
  try {
    await streamEvents(STREAM, {
      body: input,
      isEnd: ({ event }) => event === "review" || event === "error",
      onEvent: ({ event, data }) => apply(event, JSON.parse(data) as Record<string, unknown>),
    });
  } catch (error) {
    // The run goes on without its watcher; the thread says what it came to.
    const isCut = error instanceof ApiError && error.kind === "network";
    if (!isCut || threadId === undefined) throw error;
    return reread(threadId);
  }
  if (failure) throw failure;
  if (review === undefined) throw new ApiError("format", "服务的回答不完整，请重试。");
  return review;
}

/** Reads the review of a thread, as soon as the server can be reached. */
async function reread(threadId: string): Promise<Review> {
  for (;;) {
    await connected();
    try {
      const { reviewPayload } = await readThread(threadId);
      if (reviewPayload) return { threadId, payload: reviewPayload };
      throw new ApiError("format", "该记录已经添加。");
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== "network") throw error;
    }
  }
}
