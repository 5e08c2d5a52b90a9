// Completions.

import type { output } from "zod/v4/core";
import { Failure } from "../failure.ts";
import { type Extra, fieldsOf, fromValue, type Json, type Type } from "../json.ts";
import { Message, type Part, PROVIDER_STATE, type ToolCall, textsOf } from "../message.ts";
import { trimmed } from "../whitespace.ts";

/** Extension field that contains the id of a completion or message. */
const ID = "id";

/** Extension field of a completion that contains unique ids of its tool calls. */
export const CALL_IDS = "call_ids";

/** The reason why a completion ended. Another text is a reason unknown to this SDK version. */
export type FinishReason =
  /** The completion is complete. */
  | "stop"
  /** The model reached its limit of output tokens. */
  | "length"
  /** The model requests tool calls. */
  | "tool-calls"
  /** A content filter withheld the rest of the completion. */
  | "content-filter"
  | (string & {});

/** Token counts of a call. A count is `undefined` if the provider does not report it. */
export interface Usage {
  /** Number of input tokens. */
  inputTokens: number | undefined;
  /** Number of output tokens. */
  outputTokens: number | undefined;
  /** Number of input tokens that the provider read from its cache. */
  cachedInputTokens: number | undefined;
  /** Number of output tokens of the reasoning. */
  reasoningTokens: number | undefined;
  /** Extension fields. */
  extra: Extra;
}

/** The attempts at one candidate of a route. */
export interface Attempt {
  /** Name of the provider. */
  provider: string;
  /** Name of the model as the route configures it. */
  model: string;
  /** Number of requests to the model, including retries. */
  tries: number;
  /** Failure of the candidate; `undefined` for the candidate that succeeded. */
  error: Failure | undefined;
}

/** The fields of a {@link Completion}. */
export interface CompletionFields {
  /** Content in order. */
  parts: Part[];
  /** Output that matches the requested schema, if the request has a schema. */
  structured: Json | undefined;
  /** Why the completion ended. */
  finishReason: FinishReason;
  /** Token counts. */
  usage: Usage;
  /** Name of the model that wrote the completion. */
  model: string;
  /** Extension fields. */
  extra: Extra;
}

/** The output of a model call. */
export class Completion implements CompletionFields {
  readonly parts: Part[];
  readonly structured: Json | undefined;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  readonly model: string;
  readonly extra: Extra;

  /** Builds a completion, for tests. */
  constructor(fields: Partial<CompletionFields> = {}) {
    this.parts = fields.parts ?? [];
    this.structured = fields.structured;
    this.finishReason = fields.finishReason ?? "stop";
    this.usage = fields.usage ?? {
      inputTokens: undefined,
      outputTokens: undefined,
      cachedInputTokens: undefined,
      reasoningTokens: undefined,
      extra: {},
    };
    this.model = fields.model ?? "";
    this.extra = fields.extra ?? {};
  }

  /** Builds a text completion, for tests. */
  static ofText(text: string): Completion {
    return new Completion({ parts: [{ type: "text", text }] });
  }

  /** Builds a completion with structured output, for tests. */
  static ofJson(document: Json): Completion {
    const text = JSON.stringify(document);
    return new Completion({ parts: [{ type: "text", text }], structured: document });
  }

  /** Builds a completion with a tool call, for tests. */
  static ofToolCall(id: string, name: string, args: Json): Completion {
    const parts: Part[] = [{ type: "tool_call", id, name, arguments: args }];
    return new Completion({ parts, finishReason: "tool-calls" });
  }

  /** Sets the id, for tests. */
  withId(id: string): Completion {
    return new Completion({ ...this, extra: { ...this.extra, [ID]: id } });
  }

  /**
   * Returns the id of the message that the completion becomes. The node should write the message with
   * this id, because clients receive the deltas under it. Returns `undefined` if the host assigns no
   * id, as in a web handler.
   */
  id(): string | undefined {
    const id = this.extra[ID];
    return typeof id === "string" ? id : undefined;
  }

  /** Returns all text parts, joined. */
  text(): string {
    return textsOf(this.parts).join("");
  }

  /** Returns all parts of reasoning, joined. */
  reasoning(): string {
    return this.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  }

  /**
   * Returns true if the completion contains text or a tool call. A provider can return a completion
   * without either for many reasons, even with the finish reason `stop`. Reasoning alone does not
   * count.
   */
  isAnswer(): boolean {
    return this.toolCalls().length > 0 || trimmed(this.text()) !== "";
  }

  /**
   * Returns the structured output as a type.
   *
   * @throws `invalid` if the request had no schema, or if the output does not fit the type.
   */
  structuredAs<T extends Type>(type: T): output<T> {
    if (this.structured === undefined) {
      throw Failure.invalid("the completion has no structured output; set `schema` of the request");
    }
    return fromValue("the structured output of the completion", this.structured, type);
  }

  /** Returns the tool calls that the model requests. */
  toolCalls(): ToolCall[] {
    return this.parts.filter((part) => part.type === "tool_call");
  }

  /**
   * Returns the candidates that the host called, in order. The last one succeeded. Empty if the host
   * does not report candidates.
   */
  attempts(): Attempt[] {
    return attemptsIn(this.extra.attempts);
  }

  /**
   * Returns an id for each tool call, in order, that no other call of the conversation has. A node that
   * writes the calls to the conversation gives them these ids, as {@link toStored} does, because some
   * models use an id again. Returns `undefined` for a completion without tool calls, and for a request
   * without `history`.
   *
   * `FakeHost` does not know the whole conversation, and returns the ids of the calls unless the script
   * sets `call_ids` in {@link Completion.extra}.
   *
   * ```ts
   * import { llm } from "wattle-plugin";
   *
   * const { parts } = llm.Completion.ofToolCall("call-1", "add", { a: 1 });
   * assert.equal(new llm.Completion({ parts }).callIds(), undefined);
   * const completion = new llm.Completion({ parts, extra: { call_ids: ["call-1-7"] } });
   * assert.deepEqual(completion.callIds(), ["call-1-7"]);
   * ```
   */
  callIds(): string[] | undefined {
    const ids = this.extra[CALL_IDS];
    const isText = (id: Json) => typeof id === "string";
    return Array.isArray(ids) && ids.every(isText) ? ids : undefined;
  }

  /**
   * Returns the opaque data of the provider, such as signatures of reasoning and of tool calls. Some
   * providers refuse a tool call that comes back without it.
   */
  providerState(): Json | undefined {
    const others = this.parts.flatMap((part) => (part.type === "other" ? [part.value] : []));
    return others.find((value) => fieldsOf(value).type === PROVIDER_STATE);
  }

  /**
   * Converts the completion to a message, with which the conversation can continue. The extension
   * fields of the message contain the id of the completion.
   */
  toMessage(): Message {
    const id = this.id();
    return new Message("assistant", this.parts, id === undefined ? {} : { [ID]: id });
  }

  /**
   * Converts the completion to a message in the format of the reducer `messages`. It contains the id,
   * by which clients recognize the message whose deltas they received, and the {@link providerState}.
   * Tool calls have the ids of {@link callIds}, or else those of the model.
   *
   * ```ts
   * import { llm } from "wattle-plugin";
   *
   * const completion = llm.Completion.ofText("hello").withId("run--1-0");
   * const message = { id: "run--1-0", role: "assistant", content: "hello" };
   * assert.deepEqual(completion.toStored(), message);
   * ```
   */
  toStored(): Extra {
    const id = this.id();
    const ids = this.callIds() ?? [];
    const calls = this.toolCalls().map(({ id, name, arguments: args }, index) => {
      return { id: ids[index] ?? id, name, arguments: args };
    });
    const reasoning = this.reasoning();
    const state = this.providerState();
    return {
      ...(id === undefined ? {} : { id }),
      role: "assistant",
      content: this.text(),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(reasoning === "" ? {} : { reasoning }),
      ...(state === undefined ? {} : { [PROVIDER_STATE]: state }),
    };
  }
}

/** Reads the attempts that a completion or the details of a failure contain. */
export function attemptsIn(attempts: Json | undefined): Attempt[] {
  if (!Array.isArray(attempts)) return [];
  return attempts.map((attempt) => {
    const { provider = "", model = "", tries = 0, error } = attempt as Extra;
    const text = (value: Json) => (typeof value === "string" ? value : "");
    return {
      provider: text(provider),
      model: text(model),
      tries: typeof tries === "number" ? tries : 0,
      error: Failure.read(error),
    };
  });
}
