// Screenshots: accepted types, maximum size and encoding.

/** Media types that vision models read. */
export const ACCEPT = "image/png,image/jpeg,image/webp,image/gif";

/** Maximum bytes that the server accepts. */
export const MOST_BYTES = 10 << 20;

/** Returns the file as a data URL. */
export function dataUrl(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("图片无法读取，请重新选择"));
    reader.readAsDataURL(file);
  });
}
