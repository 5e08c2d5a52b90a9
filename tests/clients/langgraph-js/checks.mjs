// What all scenarios use.

import assert from "node:assert/strict";

/** The input of `agent`. */
export const INPUT = { messages: [], value: "init", items: [] };

/** What `agent` asks. */
export const QUESTION = "Are we good?";

export const MODES = ["values", "updates", "messages-tuple", "custom"];

/** The client does not have the feature that a scenario is about. Older clients lack some. */
export class Lacks extends Error {}

/** Leaves the scenario out if the client does not have a feature. */
export function needs(feature, has) {
  if (!has) throw new Lacks(feature);
}

/** A thread whose run waits for an answer, and the values of then. */
export async function asked(client) {
  const { thread_id } = await client.threads.create();
  const values = await client.runs.wait(thread_id, "agent", { input: INPUT });
  return { thread_id, values };
}

export async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

export function dataOf(parts, event) {
  return parts.filter((part) => part.event === event).map((part) => part.data);
}

/** Types and contents of messages. */
export function texts(values) {
  return values.messages.map(({ type, content }) => [type, content]);
}

export async function refused(request, status) {
  await assert.rejects(request, (error) => {
    assert.equal(error.status, status);
    return true;
  });
}

/** A thread with a run that is at work until it is cancelled. */
export async function begun(client) {
  const { thread_id } = await client.threads.create();
  const { run_id } = await client.runs.create(thread_id, "stalling_agent", { input: {} });
  await atWork(client, thread_id, run_id);
  return { thread_id, run_id };
}

/** Waits until a run of `stalling_agent` is at work. */
export async function atWork(client, thread_id, run_id) {
  const options = { lastEventId: "-1", streamMode: "custom" };
  for await (const { event } of client.runs.joinStream(thread_id, run_id, options)) {
    if (event === "custom") return;
  }
  assert.fail(`the run ${run_id} ended without a step`);
}
