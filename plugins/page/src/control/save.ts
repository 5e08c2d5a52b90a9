// Exports from a page: to the clipboard, or to a file.

/** Copies a text. Fails if the browser does not allow it. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard === undefined) throw new Error("the page has no clipboard");
  await navigator.clipboard.writeText(text);
}

/** Offers a file to the user. */
export function saveFile(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  // The browser has read the URL by the next task.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
