// The text that a link suggests: `?initial=`. A page shows it in its field and sends nothing,
// because a link must not act.
import { parameter, withParameter } from "../hook/url.ts";

/** Maximum length of a suggested text. */
const MOST_CHARACTERS = 2_000;

const NAME = "initial";

/**
 * Returns the suggested text, and removes it from the URL, so that a reload does not suggest it
 * again. Returns an empty text if there is none. Called once, when a page is loaded.
 */
export function takeSuggestion(): string {
  const text = parameter(NAME);
  if (text === undefined) return "";
  window.history.replaceState(window.history.state, "", withParameter(NAME, undefined));
  return text.trim().slice(0, MOST_CHARACTERS);
}
