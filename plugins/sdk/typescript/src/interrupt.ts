// Interrupts: a node asks a person or another party, and continues with the answer.

import type { output } from "zod/v4/core";
import * as host from "#host/interrupt";
import { type Extra, fromValue, type Json, type Type, toValue } from "./json.ts";
import { inputSchema } from "./schema.ts";

/** The question of an interrupt. */
export interface Question {
  /** Payload to show to the person. */
  payload: Json;
  /**
   * JSON Schema for the answer. The host rejects an answer that violates the schema, and the interrupt
   * remains pending.
   */
  responseSchema: Json | undefined;
  /** Extension fields. */
  extra: Extra;
}

/**
 * Raises an interrupt and returns its answer.
 *
 * Until the answer arrives, the run is interrupted: the host unwinds the guest and frees its memory.
 * When the answer arrives, the host executes the node again from its journal. Code after the call
 * therefore runs once, and calls before it take effect once.
 */
export function ask(payload: unknown): Json;
/**
 * Raises an interrupt and returns its answer as a type. The host rejects an answer that violates the
 * schema of the type, and the interrupt remains pending.
 *
 * ```ts
 * import { interrupt } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 * import * as z from "zod";
 *
 * const host = new FakeHost().answer({ approved: true });
 * host.run(() => {
 *   const decision = interrupt.ask({ amount: 120 }, z.object({ approved: z.boolean() }));
 *   assert.ok(decision.approved);
 * });
 * assert.deepEqual(host.questions()[0]?.payload, { amount: 120 });
 * ```
 */
export function ask<T extends Type>(payload: unknown, type: T, extra?: Extra): output<T>;
export function ask(payload: unknown, type?: Type, extra: Extra = {}): unknown {
  const answer = host.ask({
    payload: toValue("the payload of the interrupt", payload),
    responseSchema: type && inputSchema("the answer", type),
    extra,
  });
  return type === undefined ? answer : fromValue("the answer", answer, type);
}
