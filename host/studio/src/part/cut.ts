// The beginning of long texts.

/** Returns the first characters of a text, with a sign that there are more. */
export function cut(text: string, chars: number): string {
  return text.length > chars ? `${text.slice(0, chars)}…` : text;
}
