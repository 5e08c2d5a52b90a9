// The conversations of a graph, and the work of their endpoints.

import { code, detailOf, Failure, settled } from "../failure.ts";
import { fieldsOf, type Json } from "../json.ts";
import * as log from "../log.ts";
import { head } from "../prompt.ts";
import * as runs from "../runs/index.ts";
import type { Request } from "../web/request.ts";
import { refuse } from "../web/respond.ts";
import { Response, type StreamFormat } from "../web/response.ts";
import { status } from "../web/status.ts";
import { trimmed, trimmedEnd } from "../whitespace.ts";
import { Agent } from "./agent.ts";
import { isLonger } from "./chars.ts";
import {
  AnswerRequest,
  ChatRequest,
  type ThreadDocument,
  type ThreadList,
  TitleRequest,
} from "./documents.ts";
import { Ended, questionOf } from "./ended.ts";
import { lastReply } from "./last-reply.ts";
import { pageOf, TITLE } from "./list.ts";
import { shownOf } from "./shown.ts";
import { hasReply } from "./stored.ts";
import { ENGLISH, type Texts } from "./texts.ts";

/** Header with the thread id, with which the next message can continue the conversation. */
const THREAD_HEADER = "x-thread-id";

/** Maximum number of characters of a message if the app sets none. */
const MESSAGE_CHARS = 20_000;

/** Maximum number of characters of a title. */
const TITLE_CHARS = 200;

/** What an app sets about its conversations. */
export interface ChatOptions {
  /** The agent: the channel with the messages, and the node whose model calls are streamed. */
  agent?: Agent;
  /** Maximum number of characters of a message; 20,000 by default. */
  messageChars?: number;
  /**
   * Gives new conversations a title: the beginning of the first line of the message, of at most this
   * number of characters. {@link Chat.list} shows it, and {@link Chat.rename} replaces it.
   */
  titleChars?: number;
  /**
   * Cancels a run if the last client of its stream disconnects, see
   * {@link HandOff.cancelOnDisconnectMs}.
   */
  cancelOnDisconnectMs?: number;
  /** Texts for users; those of {@link ENGLISH} by default. */
  texts?: Partial<Texts>;
}

/**
 * The conversations of a graph. A conversation is the messages of a thread, in a channel with the
 * reducer `messages`, such as that of the nodes of the plugin `std`. It needs no tables.
 *
 * {@link endpoints} declares the common endpoints. An app declares others itself, and the methods do
 * their work:
 *
 * ```ts
 * import { chat, handler, Request } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const CHAT = new chat.Chat("notes", { messageChars: 4_000 });
 *
 * const stream = handler(
 *   "POST",
 *   "/api/chat",
 *   { doc: "Sends a message and streams the reply.", body: chat.ChatRequest, events: z.unknown() },
 *   (request) => CHAT.stream(request),
 * );
 *
 * const host = new FakeHost();
 * const request = new Request().withBody('{"message": "hi"}');
 * const response = host.run(() => stream.handle(request));
 * assert.equal(response.headers[0]?.[0], "x-thread-id");
 * const input = { messages: [{ role: "user", content: "hi" }] };
 * assert.deepEqual(host.started()[0]?.input, input);
 * ```
 *
 * A refused request is a failure with the status of the response and one of the {@link Texts} as its
 * message, which `web.respond` reports in the form of the app.
 */
export class Chat {
  /** Name of the graph. */
  readonly graph: string;
  readonly #agent: Agent;
  readonly #messageChars: number;
  readonly #titleChars: number | undefined;
  readonly #graceMs: number | undefined;
  readonly #texts: Texts;

  /** Describes the conversations of a graph. */
  constructor(graph: string, options: ChatOptions = {}) {
    this.graph = graph;
    this.#agent = options.agent ?? new Agent();
    this.#messageChars = options.messageChars ?? MESSAGE_CHARS;
    this.#titleChars = options.titleChars;
    this.#graceMs = options.cancelOnDisconnectMs;
    this.#texts = { ...ENGLISH, ...options.texts };
  }

  /**
   * Starts a run with the message of a {@link ChatRequest}. A retry starts a run without a new message,
   * because tools could act twice on a message that is sent twice.
   *
   * Both are refused while a question of the conversation is pending. A run that starts without the
   * answer would give up the tool call that waits for it.
   *
   * @throws A failure with a status for a refused request, see {@link Texts}.
   */
  send(request: Request<unknown>): runs.RunRef {
    const body = settled(() => request.json(ChatRequest));
    if (body instanceof Failure) throw refuse(status.BAD_REQUEST, this.#texts.malformed);
    const threadId = body.threadId || undefined;
    if (body.retry) return this.#retry(threadId);
    const message = trimmed(body.message);
    if (message === "") throw refuse(status.BAD_REQUEST, this.#texts.empty);
    if (isLonger(message, this.#messageChars)) {
      throw refuse(status.PAYLOAD_TOO_LARGE, this.#texts.tooLong);
    }
    const input = { [this.#agent.channel]: [{ role: "user", content: message }] };
    return this.#start({ threadId, input, metadata: this.#metadata(threadId, message) });
  }

  /**
   * Sends a message as {@link send} does and hands the stream of the run off: as the host's own events,
   * or with `?format=ai-sdk` as a message of the AI SDK. The header `x-thread-id` has the id of the
   * thread.
   */
  stream(request: Request<unknown>): Response {
    const format = this.#format(request) ?? "sse";
    const run = this.send(request);
    return this.#handOff(run, format).withHeader(THREAD_HEADER, run.threadId);
  }

  /**
   * Waits until a run has ended or is interrupted, for a response without a stream.
   *
   * ```ts
   * import { chat, handler, web } from "wattle-plugin";
   *
   * const CHAT = new chat.Chat("notes");
   *
   * export const send = handler(
   *   "POST",
   *   "/api/chat",
   *   {
   *     doc: "Sends a message and waits for the reply.",
   *     body: chat.ChatRequest,
   *     returns: { 200: chat.Reply, 202: chat.Waiting },
   *     error: chat.ChatError,
   *   },
   *   (request) =>
   *     web.respond(request, () => {
   *       const ended = CHAT.wait(CHAT.send(request));
   *       return ended.respond(() => [web.status.BAD_GATEWAY, "the model is not available"]);
   *     }),
   * );
   * ```
   */
  wait(run: runs.RunRef): Ended {
    return this.#ended(runs.wait(run));
  }

  /**
   * Returns a conversation with its messages and pending questions. Messages of the active run are
   * omitted, because its stream has them from the beginning.
   *
   * @throws `not-found` with status 404 if the graph has no such thread.
   */
  show(threadId: string): ThreadDocument {
    const thread = this.#find(threadId);
    const channel = this.#messages(thread.state);
    const messages = shownOf(channel, !thread.isRunning(), this.#texts.unfinished);
    const questions = pending(thread).map(questionOf);
    const document = { threadId: thread.threadId, status: thread.status, messages };
    return questions.length === 0 ? document : { ...document, questions };
  }

  /**
   * Hands the stream of the active run off, from its beginning: as a message of the AI SDK, because
   * `useChat` resumes a stream without parameters, or with `?format=sse` as the host's own events.
   * Responds with 204 if there is none.
   *
   * @throws A failure with status 400 for an unknown format; `not-found` with status 404 if the graph
   * has no such thread.
   */
  join(threadId: string, request: Request<unknown>): Response {
    const format = this.#format(request) ?? "ai-sdk";
    const run = this.#find(threadId).activeRun();
    return run ? this.#handOff(run, format) : Response.empty(status.NO_CONTENT);
  }

  /**
   * Cancels the active run, waits for its end, and returns the conversation. Without an active run
   * nothing changes.
   *
   * @throws `not-found` with status 404 if the graph has no such thread.
   */
  cancel(threadId: string): ThreadDocument {
    const run = this.#find(threadId).activeRun();
    if (run) runs.cancelAndWait(run);
    return this.show(threadId);
  }

  /**
   * Lists the conversations of the tenant of a request, newest update first. The query parameters of
   * the request are `limit`, which is 50 by default and at most 200, `after`, which is `next` of the
   * page before, and `text`, which selects conversations by their titles and ids.
   *
   * @throws A failure with status 400 for a parameter that is not valid.
   */
  list(request: Request<unknown>): ThreadList {
    const page = settled(() => pageOf(this.graph, request));
    if (!(page instanceof Failure)) return page;
    throw page.code === code.INVALID ? refuse(status.BAD_REQUEST, this.#texts.list) : page;
  }

  /**
   * Sets the title of a conversation to that of a {@link TitleRequest}.
   *
   * @throws A failure with status 400 for a title without 1 to 200 characters; `not-found` with status
   * 404 if the graph has no such thread; a failure with status 409 if the thread is in use.
   */
  rename(threadId: string, request: Request<unknown>): void {
    const body = settled(() => request.json(TitleRequest));
    const title = body instanceof Failure ? "" : trimmed(body.title);
    if (title === "" || isLonger(title, TITLE_CHARS)) {
      throw refuse(status.BAD_REQUEST, this.#texts.title);
    }
    const thread = this.#find(threadId);
    this.#unused(() => runs.updateThread(thread.threadId, { [TITLE]: title }));
  }

  /**
   * Deletes a conversation. Cancels its active run first.
   *
   * @throws `not-found` with status 404 if the graph has no such thread; a failure with status 409 if
   * the thread is in use.
   */
  delete(threadId: string): void {
    const thread = this.#find(threadId);
    const run = thread.activeRun();
    if (run) runs.cancelAndWait(run);
    this.#unused(() => runs.deleteThreadIfAny(thread.threadId));
  }

  /**
   * Answers a pending question with the answer of an {@link AnswerRequest}, and waits until the run has
   * ended or is interrupted again. Further questions stay pending, and the run is interrupted for them.
   *
   * Of several requests with an answer to one question, such as those of a double click, one resumes
   * the run.
   *
   * @throws A failure with status 400 for an answer that does not fit its question, which remains
   * pending; `not-found` with status 404 if the graph has no such thread; `conflict` with status 409 if
   * the question is not pending; `busy` with status 409 if other requests had active runs in all
   * attempts.
   */
  answer(threadId: string, request: Request<unknown>): Ended {
    const invalid = () => refuse(status.BAD_REQUEST, this.#texts.answer);
    const body = settled(() => request.json(AnswerRequest));
    if (body instanceof Failure) throw invalid();
    const { id, answer } = body;
    // After a run for another question, this one is pending again.
    const isOver = (thread: runs.Thread) => {
      const hasQuestion = thread.interrupts.some((question) => question.id === id);
      const isPending = hasQuestion && (thread.isInterrupted() || thread.isRunning());
      return isPending ? undefined : true;
    };
    const outcome = runs.resumeOnce(this.graph, { threadId, answers: { [id]: answer } }, isOver);
    switch (outcome.type) {
      case "ended":
        return this.#ended(outcome.run);
      case "done":
        throw refuse(status.CONFLICT, this.#texts.notPending);
      case "refused": {
        const { message } = outcome.failure;
        log.debug(`an answer on thread \`${threadId}\` is refused: ${message}`);
        throw invalid();
      }
      // Any thread of the graph that is not interrupted is over.
      case "not_interrupted":
        throw this.#missing();
      default:
        throw this.#busy();
    }
  }

  /** Returns the format of a stream that a request names. */
  #format(request: Request<unknown>): StreamFormat | undefined {
    const format = request.query("format");
    if (format === undefined || format === "sse" || format === "ai-sdk") return format;
    throw refuse(status.BAD_REQUEST, this.#texts.format);
  }

  /** Returns the metadata of a new conversation, if it gets a title. */
  #metadata(threadId: string | undefined, message: string): { [TITLE]: string } | undefined {
    if (this.#titleChars === undefined) return undefined;
    if (threadId !== undefined && runs.find(this.graph, threadId) !== undefined) return undefined;
    return { [TITLE]: titleOf(message, this.#titleChars) };
  }

  /** Starts a run without a new message. */
  #retry(threadId: string | undefined): runs.RunRef {
    if (threadId === undefined) throw this.#missing();
    const thread = this.#find(threadId);
    // A question may be pending behind a reply that is the last message.
    if (pending(thread).length > 0) throw refuse(status.CONFLICT, this.#texts.waiting);
    if (hasReply(this.#messages(thread.state))) {
      throw refuse(status.CONFLICT, this.#texts.nothingToRetry);
    }
    return this.#start({ threadId: thread.threadId });
  }

  #start(request: Omit<runs.StartOptions, "graph">): runs.RunRef {
    const { graph } = this;
    const run = settled(() => runs.start({ ...request, graph, rejectIfInterrupted: true }));
    if (!(run instanceof Failure)) return run;
    log.debug(`start a run: ${run.message}`);
    if (run.code === code.INVALID) throw refuse(status.BAD_REQUEST, this.#texts.threadId);
    if (run.code !== code.CONFLICT) throw this.#refused(run);
    const isWaiting = detailOf(run, "reason") === "interrupted";
    // Otherwise the thread belongs to another graph.
    throw isWaiting ? refuse(status.CONFLICT, this.#texts.waiting) : this.#missing();
  }

  /** Refuses a request for a thread that another operation uses or has deleted. */
  #unused(work: () => void): void {
    const done = settled(work);
    if (done instanceof Failure) throw this.#refused(done);
  }

  #refused(failure: Failure): Failure {
    if (failure.code === code.BUSY) return this.#busy();
    return failure.code === code.NOT_FOUND ? this.#missing() : failure;
  }

  #busy(): Failure {
    return new Failure(code.BUSY, this.#texts.busy).withStatus(status.CONFLICT);
  }

  #missing(): Failure {
    return refuse(status.NOT_FOUND, this.#texts.missing);
  }

  #ended(run: runs.EndedRun): Ended {
    return new Ended(run, lastReply(this.#messages(run.state)), this.#texts);
  }

  /** Returns the thread of a conversation. Threads of other graphs are not found. */
  #find(threadId: string): runs.Thread {
    const thread = runs.find(this.graph, threadId);
    if (thread === undefined) throw this.#missing();
    return thread;
  }

  #messages(state: Json): Json | undefined {
    return fieldsOf(state)[this.#agent.channel];
  }

  #handOff({ threadId, runId }: runs.RunRef, format: StreamFormat): Response {
    const nodes = [this.#agent.modelNode];
    return Response.handOff({
      threadId,
      runId,
      format,
      nodes,
      cancelOnDisconnectMs: this.#graceMs,
    });
  }
}

/**
 * Returns the interrupts of a conversation that wait for an answer. A run that failed or was cancelled
 * may leave interrupts, which the next message gives up.
 */
function pending(thread: runs.Thread): runs.Interrupt[] {
  return thread.isInterrupted() ? thread.interrupts : [];
}

/** Returns the title of a conversation that begins with a message. */
function titleOf(message: string, chars: number): string {
  const [line = ""] = message.split(/\r?\n/, 1);
  return trimmedEnd(head(line, chars));
}
