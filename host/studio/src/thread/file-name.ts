// Names of files with an id in them. The id may be any text.

/** Characters of the id in a name. Some file systems allow 255 bytes for the whole name. */
const ID_CHARS = 80;

/** Returns the name of a file about a thread. It has no character with a meaning in a path. */
export function fileName(thread: string, extension: string): string {
  const id = thread.replace(/[^A-Za-z0-9_-]+/g, "_").slice(0, ID_CHARS);
  return `thread-${id}.${extension}`;
}
