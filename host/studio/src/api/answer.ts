// Answers to interrupts, as the log of a thread has them.
import type { Schemas } from "./client.ts";
import type { EventOutline } from "./log.ts";

/** An answer that somebody gave. */
export interface GivenAnswer {
  at_ms: number;
  principal: Schemas["Principal"] | undefined;
  answer: Schemas["Excerpt"];
}

/** Returns the first answer to an interrupt among events; `undefined` if they have none. */
export function answerAmong(
  events: readonly EventOutline[],
  interrupt: string,
): GivenAnswer | undefined {
  for (const event of events) {
    if (event.type !== "answered" || event.interrupt !== interrupt) continue;
    const { at_ms, principal, answer } = event;
    return { at_ms, principal: principal ?? undefined, answer };
  }
  return undefined;
}
