// The first message of a user.

/** Minimum number of characters of a video id. */
const SHORTEST_ID = 6;

const HOSTS = /^(www\.|m\.|music\.)?youtube\.com$/;
const SHORT_HOST = /^(www\.)?youtu\.be$/;
const ID = /^[\w-]+$/;

/** Returns the usual URL of a YouTube video; `undefined` if the text is not a URL of one. */
export function videoUrl(text: string): string | undefined {
  const trimmed = text.trim();
  const href = /^https?:\/\//i.test(trimmed) ? trimmed : `https://${trimmed}`;
  if (/\s/.test(trimmed) || !URL.canParse(href)) return undefined;
  const id = idOf(new URL(href));
  if (id === undefined || id.length < SHORTEST_ID || !ID.test(id)) return undefined;
  return `https://www.youtube.com/watch?v=${id}`;
}

function idOf({ hostname, pathname, searchParams }: URL): string | undefined {
  const [, first, second] = pathname.split("/");
  if (SHORT_HOST.test(hostname)) return first;
  if (!HOSTS.test(hostname)) return undefined;
  if (first === "watch") return searchParams.get("v") ?? undefined;
  return first === "shorts" ? second : undefined;
}

/**
 * Converts a text to the first message: the URL of a video becomes a request, other text is kept.
 */
export function toGuidePrompt(text: string): string {
  const url = videoUrl(text);
  return url === undefined ? text.trim() : `Create a travel guide from this video: ${url}`;
}

/** Returns the first message from the fields of the start: a video, wishes, or both. */
export function firstMessage(video: string, wishes: string): string {
  const parts = [toGuidePrompt(video), wishes.trim()];
  return parts.filter((part) => part !== "").join("\n\n");
}
