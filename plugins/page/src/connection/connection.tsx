// The connection, as users see it.
import { onlineManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { useChange } from "../hook/change.ts";
import { useTexts } from "../language/language.ts";
import { type Connection, connection } from "./state.ts";

export { connected, isAway, lost, reached } from "./state.ts";

/** Returns the state of the connection. `onReturn` is called each time it is restored. */
export function useConnection(onReturn?: () => void): Connection {
  const state = useSyncExternalStore(onlineManager.subscribe, connection);
  useChange(state, () => {
    if (state === "connected") onReturn?.();
  });
  return state;
}

/** Shows that the server is not reachable, until it is. */
export function Banner() {
  const texts = useTexts();
  const state = useConnection();
  return (
    <div className="w-banner" role="status" aria-live="polite" data-state={state}>
      {state === "lost" && <p>{texts.disconnected}</p>}
    </div>
  );
}
