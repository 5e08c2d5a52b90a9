// A checkpoint with its state, for the parts of a view.
import { useQuery } from "@tanstack/react-query";
import { type GraphPlace, readCheckpoint } from "./read.ts";

/** Time for which a state that is not shown any more is kept, in milliseconds. It may be large. */
const KEPT_MS = 60_000;

/** Reads a checkpoint; nothing without its number. */
export function useCheckpoint(place: GraphPlace, checkpoint: string | undefined) {
  const { thread, tenant, namespace } = place;
  return useQuery({
    queryKey: ["checkpoint", thread, tenant, namespace, checkpoint],
    queryFn: ({ signal }) => readCheckpoint(place, checkpoint ?? "", signal),
    enabled: checkpoint !== undefined,
    gcTime: KEPT_MS,
  });
}
