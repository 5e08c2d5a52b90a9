// The message in the URL of a new session, which is sent once, also if the page is reloaded.
import { replaceUrl } from "@wattle/page";
import { sessionAddress } from "./route.ts";

const key = (id: string) => `wattle-travel-initial-${id}`;

/**
 * Returns true if the message in a URL must be sent now. Records it for this tab, and removes it
 * from the URL.
 */
export function isFirstVisit(id: string, initial: string): boolean {
  const isFirst = sessionStorage.getItem(key(id)) === null;
  sessionStorage.setItem(key(id), initial);
  replaceUrl(sessionAddress(id));
  return isFirst;
}
