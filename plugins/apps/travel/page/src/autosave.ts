// Saves edits automatically: the newest one, some time after the last change.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useState } from "react";

export type SaveState = "saved" | "changed" | "saving" | "failed";

/** Delay after the last change before edits are saved, in milliseconds. */
export const DEBOUNCE_MS = 900;

/**
 * Saves edits one after the other, the newest last. `left` is an edit that was not saved before.
 * `setEdit` gets each edit as an object of its own, and `undefined` if there is nothing to save.
 */
export function useAutosave<T extends object>(
  key: string,
  save: (edit: T) => Promise<unknown>,
  left?: T,
) {
  const client = useQueryClient();
  const [edit, setEdit] = useState(left);
  const mutationKey = ["autosave", key];
  const { mutate, variables, isPending } = useMutation({
    mutationKey,
    mutationFn: save,
    onSuccess: (_, saved) => setEdit((now) => (now === saved ? undefined : now)),
    networkMode: "always",
  });
  /** Saves the edit now, unless another one is being saved. */
  const flush = () => {
    if (edit !== undefined && client.isMutating({ mutationKey }) === 0) mutate(edit);
  };
  const onTime = useEffectEvent(flush);
  // The user, the next change or a restored connection retries an edit that could not be saved.
  const isNew = edit !== undefined && edit !== variables;
  useEffect(() => {
    // An edit that was made during a save waits for a delay of its own.
    if (edit === undefined || !isNew || isPending) return;
    const timer = setTimeout(onTime, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [edit, isNew, isPending]);
  const tried = isPending ? "saving" : "failed";
  const state: SaveState = edit === undefined ? "saved" : isNew ? "changed" : tried;
  return { state, setEdit, flush };
}
