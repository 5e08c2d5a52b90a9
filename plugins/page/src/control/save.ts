// What leaves the page: to the clipboard, or to a file of the user's.

/** Copies a text; fails where the browser does not allow it. */
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
  // The browser has read the address by the next task.
  setTimeout(() => URL.revokeObjectURL(link.href));
}
