// The message in the address of a new session: it is sent once, also if the page is loaded again.
import { replace, sessionAddress } from "./route.ts";

const key = (id: string) => `wattle-travel-initial-${id}`;

/**
 * Whether the message in an address is to be sent now. It is noted for this tab, and taken out of
 * the address.
 */
export function isFirstVisit(id: string, initial: string): boolean {
  const isFirst = sessionStorage.getItem(key(id)) === null;
  sessionStorage.setItem(key(id), initial);
  replace(sessionAddress(id));
  return isFirst;
}
