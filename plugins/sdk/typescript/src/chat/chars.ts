// Limits of texts in characters. A character is a code point, as in the other SDKs.

import { head } from "../prompt.ts";

/** Returns true if a text has more characters than a limit. */
export function isLonger(text: string, chars: number): boolean {
  return head(text, chars).length < text.length;
}
