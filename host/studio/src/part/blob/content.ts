// The content of a blob: what the studio shows of it, and how it is read. The bytes are those of a
// stranger, and so is their media type.
import { tenantHeaders } from "../../access/key.ts";
import { api, ok } from "../../api/client.ts";

/** Images that are shown. Others, such as SVG, can contain more than an image. */
const IMAGES = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

/** Sound and video that are played. Others, such as playlists, can refer to other addresses. */
const AUDIO = new Set(["audio/mpeg", "audio/mp4", "audio/ogg", "audio/wav", "audio/webm"]);
const VIDEO = new Set(["video/mp4", "video/ogg", "video/webm"]);

/** Bytes of the largest image that is shown. Its pixels take many times as much memory. */
const IMAGE_BYTES = 16 << 20;

/** Bytes of the longest sound or video that is played. All of it is in memory. */
const MEDIA_BYTES = 64 << 20;

/** Bytes of the longest text that is shown. A longer one would stop the browser. */
const TEXT_BYTES = 1 << 20;

/** A blob, as a thread refers to it. */
export interface BlobPlace {
  readonly thread: string;
  readonly tenant: string | undefined;
  readonly digest: string;
}

/** Content that the browser decodes. */
interface Encoded {
  readonly mediaType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface ImageContent extends Encoded {
  readonly kind: "image";
}

export interface PlayedContent extends Encoded {
  readonly kind: "audio" | "video";
}

/** What is shown of a blob. `file`: nothing, it can be downloaded. */
export type BlobContent =
  | ImageContent
  | PlayedContent
  | { readonly kind: "text"; readonly mediaType: string; readonly text: string }
  | { readonly kind: "file"; readonly mediaType: string };

/** Returns the media type without its parameters. */
export function mediaTypeOf(header: string | null): string {
  return (header ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Returns how content of a media type is shown, and up to which size. */
export function shownAs(mediaType: string): { kind: BlobContent["kind"]; mostBytes: number } {
  if (IMAGES.has(mediaType)) return { kind: "image", mostBytes: IMAGE_BYTES };
  if (AUDIO.has(mediaType)) return { kind: "audio", mostBytes: MEDIA_BYTES };
  if (VIDEO.has(mediaType)) return { kind: "video", mostBytes: MEDIA_BYTES };
  const isText = mediaType.startsWith("text/") || /^application\/(.+\+)?json$/.test(mediaType);
  return isText ? { kind: "text", mostBytes: TEXT_BYTES } : { kind: "file", mostBytes: 0 };
}

/** Returns the ending of the name of a downloaded file. */
export function endingOf(mediaType: string): string {
  return mediaType === "application/pdf" ? ".pdf" : "";
}

/** Reads what is shown of a blob. */
export async function readContent(place: BlobPlace, signal: AbortSignal): Promise<BlobContent> {
  const answer = api.GET("/api/v1/threads/{thread}/blobs/{digest}", {
    params: { path: { thread: place.thread, digest: place.digest } },
    headers: tenantHeaders(place.tenant),
    parseAs: "stream",
    signal,
  });
  const body = await ok(answer);
  const mediaType = mediaTypeOf((await answer).response.headers.get("content-type"));
  const { kind, mostBytes } = shownAs(mediaType);
  const bytes = await readUpTo(body ?? null, mostBytes);
  if (bytes === undefined || kind === "file") return { kind: "file", mediaType };
  if (kind === "text") return { kind, mediaType, text: new TextDecoder().decode(bytes) };
  return { kind, mediaType, bytes };
}

/** Reads a body; `undefined` if it has more bytes. */
async function readUpTo(
  body: ReadableStream<Uint8Array> | null,
  mostBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const reader = body?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) break;
    chunks.push(value);
    size += value.length;
    if (size > mostBytes) {
      // The rest is not needed, and the connection may be broken already.
      await reader?.cancel().catch(() => undefined);
      return undefined;
    }
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Reads a blob as a whole, for a file. */
export function readFile({ thread, tenant, digest }: BlobPlace): Promise<Blob> {
  const params = { path: { thread, digest } };
  const headers = tenantHeaders(tenant);
  const path = "/api/v1/threads/{thread}/blobs/{digest}";
  return ok(api.GET(path, { params, headers, parseAs: "blob" }));
}
