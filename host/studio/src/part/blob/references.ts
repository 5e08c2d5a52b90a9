// References to blobs in JSON documents: `blob:<digest>`, also within a longer text.

const REFERENCE = /blob:([0-9a-f]{64})/g;

/** Maximum number of blobs of a document that are listed. */
export const LISTED_BLOBS = 50;

/** Maximum number of values of a document that are looked at. It takes some milliseconds. */
const MOST_VALUES = 200_000;

/** Returns the digests of the blobs that a document refers to, in order, each once. */
export function blobsIn(document: unknown): string[] {
  const found = new Set<string>();
  const open = [document];
  for (let seen = 0; open.length > 0 && seen < MOST_VALUES; seen += 1) {
    const value = open.pop();
    if (typeof value === "string") {
      for (const [, digest = ""] of value.matchAll(REFERENCE)) found.add(digest);
    } else if (typeof value === "object" && value !== null) {
      // The last one is looked at first.
      for (const child of Object.values(value).reverse()) open.push(child);
    }
    if (found.size >= LISTED_BLOBS) break;
  }
  return [...found].slice(0, LISTED_BLOBS);
}
