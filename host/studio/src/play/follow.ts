// A run that the playground started: its timeline, and its thread once it has ended.
import { useQuery } from "@tanstack/react-query";
import type { RunPlace } from "../api/log.ts";
import { readThread } from "../api/thread.ts";
import { runRoute } from "../router/links.tsx";
import { RunStore } from "../run/store.ts";
import type { Timeline } from "../run/timeline.ts";
import { useRunStore } from "../run/use-store.ts";
import type { MadeCall } from "./calls.tsx";

/** Follows a run. Another run needs another part of the page. */
export function useTrial(place: RunPlace) {
  const [store, { phase, error }] = useRunStore(() => new RunStore(place));
  const { timeline } = store;
  const end = useQuery({
    queryKey: ["trial", place.thread, place.run, place.tenant],
    queryFn: () => readThread(place),
    enabled: timeline.isOver,
    // The thread is shown as the run left it.
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { timeline, phase, error, end, retry: () => store.start() };
}

/** Returns what a model writes at the moment. */
export function liveText(timeline: Timeline): string {
  const isLive = timeline
    .rows()
    .findLast(({ status, call }) => status === "running" && call !== undefined && call.text !== "");
  return isLive?.call?.text ?? "";
}

/** Returns the host calls of a run in order. */
export function callsOf(place: RunPlace, timeline: Timeline): MadeCall[] {
  return timeline.rows().flatMap(({ id, seq, call, durationUs, code, detail }) => {
    if (call === undefined) return [];
    const failure = code === undefined ? undefined : { code, message: detail };
    const { function: name, summary, scope } = call;
    const to = runRoute(place, seq);
    return [{ key: id, depth: scope.length, function: name, summary, durationUs, failure, to }];
  });
}
