// Digests as short texts: of versions, apps and blobs.

/** Digits of a digest that are shown. Two digests of a host hardly begin with the same ones. */
const DIGITS = 12;

/** Returns the first digits of a digest. */
export function digestText(digest: string): string {
  return digest.slice(0, DIGITS);
}
