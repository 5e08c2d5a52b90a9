// Texts of conversations for users.

/** Texts for users. An app can give its own, in the language of its users. */
export interface Texts {
  /** The body is not a {@link ChatRequest}; status 400. */
  malformed: string;
  /** The message is empty; status 400. */
  empty: string;
  /** No thread can have the id; status 400. */
  threadId: string;
  /** The format of the stream is unknown; status 400. */
  format: string;
  /** The app has no such conversation, or it has expired; status 404. */
  missing: string;
  /** A run of the conversation is active; status 409. */
  busy: string;
  /** A question of the conversation is pending, and the request is a message or a retry; status 409. */
  waiting: string;
  /**
   * The body is not an {@link AnswerRequest}, or the answer does not fit its question; status 400.
   */
  answer: string;
  /** The question of an answer is not pending; status 409. */
  notPending: string;
  /** The last message has a reply, so a retry has nothing to do; status 409. */
  nothingToRetry: string;
  /** The message is too long; status 413. */
  tooLong: string;
  /** The title is missing, empty or longer than 200 characters; status 400. */
  title: string;
  /** A parameter of a list is invalid; status 400. */
  list: string;
  /** The run was cancelled before its reply; status 409. */
  cancelled: string;
  /** The run failed; status 502. Only {@link Ended.toResponse} uses the text. */
  failed: string;
  /** Error of a tool call without a result, in the messages of a conversation. */
  unfinished: string;
}

/** The texts of a {@link Chat} that sets none. */
export const ENGLISH: Texts = {
  malformed: "the body must be a JSON object with a text in `message`",
  empty: "the message is empty",
  threadId: "`threadId` is invalid",
  format: "`format` must be `sse` or `ai-sdk`",
  missing: "the conversation does not exist or has expired",
  busy: "the reply to the previous message is not complete; try again later",
  waiting: "an operation of the conversation waits for an answer",
  answer: "the answer does not fit the question",
  notPending: "the question does not wait for an answer",
  nothingToRetry: "the last message has a reply",
  tooLong: "the message is too long; send it in several messages",
  title: "`title` must have 1 to 200 characters",
  list: "`limit`, `after` or `text` is invalid",
  cancelled: "the run was cancelled",
  failed: "the run failed; try again later",
  unfinished: "this step was not completed",
};
