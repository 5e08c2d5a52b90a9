// What a link suggests to write: `?initial=`. A page shows it in its field and sends nothing, since a link must not act.

/** The longest text that a link may suggest. */
const MOST_CHARACTERS = 2_000;

const NAME = "initial";

/**
 * Takes the suggested text out of the address, so that a reload does not suggest it again. Empty if there is none.
 * Called once, when a page is loaded.
 */
export function takeSuggestion(): string {
  const url = new URL(window.location.href);
  const text = url.searchParams.get(NAME);
  if (text === null) return "";
  url.searchParams.delete(NAME);
  window.history.replaceState(window.history.state, "", url);
  return text.trim().slice(0, MOST_CHARACTERS);
}
