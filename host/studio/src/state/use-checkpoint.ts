// A checkpoint with its state, for the parts of a view.
import { useQuery } from "@tanstack/react-query";
import { LARGE } from "../api/large.ts";
import { type GraphPlace, readCheckpoint } from "./read.ts";

/** Reads a checkpoint; nothing without its number. */
export function useCheckpoint(place: GraphPlace, checkpoint: string | undefined) {
  const { thread, tenant, namespace } = place;
  return useQuery({
    queryKey: ["checkpoint", thread, tenant, namespace, checkpoint],
    queryFn: ({ signal }) => readCheckpoint(place, checkpoint ?? "", signal),
    enabled: checkpoint !== undefined,
    ...LARGE,
  });
}
