// Screenshots: which kinds models can read, and how they are sent.

/** Kinds that vision models read. */
export const ACCEPT = "image/png,image/jpeg,image/webp,image/gif";

/** The most that the server takes. */
export const MOST_BYTES = 10 << 20;

/** The file as a data URL. */
export function dataUrl(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("图片无法读取，请重新选择"));
    reader.readAsDataURL(file);
  });
}
