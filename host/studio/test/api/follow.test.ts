// Following a run while its host stops and starts, and while the tab is hidden.
import { connected, reached } from "@wattle/page/connection";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type FollowState, follow } from "../../src/api/follow.ts";
import type { EventOutline } from "../../src/api/log.ts";
import { problem } from "../host.ts";
import {
  callStarted,
  log,
  RUN,
  runEnded,
  runStarted,
  streamed,
  taskStarted,
  text,
} from "../run/log.ts";
import { type OpenedStream, serveStreams } from "../run/streams.ts";

const EVENTS = log(
  runStarted(),
  taskStarted("t1"),
  callStarted("t1", 0),
  streamed("t1", 0, text("a")),
  runEnded(),
);

let opened: OpenedStream[];
let refusal: Response | undefined;
let batches: (readonly EventOutline[])[];
let states: FollowState[];
let errors: Error[];
let stop: () => void;

beforeEach(() => {
  [batches, states, errors] = [[], [], []];
  refusal = undefined;
  opened = serveStreams(() => new Response("<html>"));
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", (input: Request | string) => {
    const refused = refusal;
    if (refused === undefined || typeof input === "string") return fetch(input as Request);
    refusal = undefined;
    return Promise.resolve(refused);
  });
});

afterEach(() => {
  stop();
  reached();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function start(after = 0): void {
  stop = follow({
    place: { thread: "t", run: RUN, tenant: undefined },
    after,
    onEvents: (batch) => batches.push(batch),
    onState: (state) => states.push(state),
    onError: (error) => errors.push(error),
  });
}

/** Returns the stream with this index, once it was opened. */
async function stream(index: number): Promise<OpenedStream> {
  await vi.waitFor(() => expect(opened.length).toBeGreaterThan(index), { timeout: 5_000 });
  return opened[index] as OpenedStream;
}

const seqs = () => batches.flat().map(({ seq }) => seq);

const some = (first: number, last: number) => EVENTS.slice(first - 1, last);

/** Shows or hides the tab. */
function look(state: DocumentVisibilityState): void {
  vi.spyOn(document, "visibilityState", "get").mockReturnValue(state);
  document.dispatchEvent(new Event("visibilitychange"));
}

test("events arrive in batches, and the last one ends the stream", async () => {
  start();
  const first = await stream(0);
  expect(Object.fromEntries(first.url.searchParams)).toEqual({
    run: RUN,
    after: "0",
    until: "idle",
    outline: "true",
  });
  first.send(...some(1, 5));
  await vi.waitFor(() => expect(states).toEqual(["open", "over"]));
  expect([batches.length, seqs()]).toEqual([1, [1, 2, 3, 4, 5]]);
  await vi.waitFor(() => expect(first.isClosed()).toBe(true));
  expect(opened.length).toBe(1);
});

test("a stream that is cut is continued after its last event", async () => {
  start();
  const first = await stream(0);
  first.send(...some(1, 3));
  await vi.waitFor(() => expect(seqs()).toEqual([1, 2, 3]));
  first.cut();
  await vi.waitFor(() => expect(states).toEqual(["open", "lost"]));
  const second = await stream(1);
  expect(second.url.searchParams.get("after")).toBe("3");
  second.send(...some(4, 5));
  await vi.waitFor(() => expect(states).toEqual(["open", "lost", "open", "over"]));
  expect(seqs()).toEqual([1, 2, 3, 4, 5]);
});

test("a host that stops or starts is asked again", async () => {
  start(1);
  (await stream(0)).end();
  refusal = problem(503, "the host is starting");
  const second = await stream(1);
  expect(second.url.searchParams.get("after")).toBe("1");
  expect([states.slice(0, 2), errors]).toEqual([["open", "lost"], []]);
  await connected();
});

test("a run that the host refuses is not followed any more", async () => {
  refusal = problem(404, "no such run");
  start();
  await vi.waitFor(() => expect(errors.map(({ message }) => message)).toEqual(["no such run"]));
  expect(opened).toEqual([]);
});

test("the failure of a log that cannot be read is shown", async () => {
  start();
  const body = JSON.stringify({ status: 400, detail: "the seal is broken" });
  (await stream(0)).write(`event: error\ndata: ${body}\n\n`);
  await vi.waitFor(() => expect(errors[0]?.message).toBe("the seal is broken"));
});

test("a hidden tab has no stream", async () => {
  start();
  const first = await stream(0);
  first.send(...some(1, 2));
  await vi.waitFor(() => expect(seqs()).toEqual([1, 2]));
  look("hidden");
  await vi.waitFor(() => expect(first.isClosed()).toBe(true));
  expect(states.at(-1)).toBe("hidden");
  look("visible");
  const second = await stream(1);
  expect(second.url.searchParams.get("after")).toBe("2");
  expect(opened.filter(({ isClosed }) => !isClosed()).length).toBe(1);
});

test("a tab that begins hidden opens its stream when it is shown", async () => {
  look("hidden");
  start();
  expect([opened.length, states]).toEqual([0, ["hidden"]]);
  look("visible");
  await stream(0);
});
