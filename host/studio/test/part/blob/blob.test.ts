// References to blobs, and how their content is shown.
import { afterEach, expect, test, vi } from "vitest";
import {
  type BlobContent,
  mediaTypeOf,
  readContent,
  shownAs,
} from "../../../src/part/blob/content.ts";
import { blobsIn, LISTED_BLOBS } from "../../../src/part/blob/references.ts";

const digestOf = (number: number) => number.toString(16).padStart(64, "0");

const PLACE = { thread: "t1", tenant: undefined, digest: digestOf(1) };

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Returns what is shown of a response. */
async function contentOf(body: BodyInit, type: string): Promise<BlobContent> {
  vi.stubGlobal("fetch", async () => new Response(body, { headers: { "content-type": type } }));
  return await readContent(PLACE, new AbortController().signal);
}

test("references are found in all texts, each once, in order", () => {
  const document = {
    messages: [
      { content: `see ![x](blob:${digestOf(2)}) and blob:${digestOf(1)}.` },
      { image: `blob:${digestOf(2)}` },
    ],
    value: { $blob: `blob:${digestOf(3)}` },
    others: ["blob:", `blob:${"z".repeat(64)}`, 7, null],
  };
  expect(blobsIn(document)).toEqual([digestOf(2), digestOf(1), digestOf(3)]);
  const many = Array.from({ length: 200 }, (_, index) => `blob:${digestOf(index)}`);
  expect(blobsIn(many)).toEqual(many.slice(0, LISTED_BLOBS).map((text) => text.slice(5)));
});

test("only images, sound and video of some types are shown as such, and pages as text", () => {
  for (const type of ["png", "jpeg", "webp", "gif"]) {
    expect(shownAs(`image/${type}`).kind).toBe("image");
  }
  for (const type of ["text/plain", "text/html", "application/json", "application/ld+json"]) {
    expect(shownAs(type).kind).toBe("text");
  }
  for (const type of ["mpeg", "mp4", "ogg", "wav", "webm"]) {
    expect(shownAs(`audio/${type}`).kind).toBe("audio");
  }
  for (const type of ["mp4", "ogg", "webm"]) expect(shownAs(`video/${type}`).kind).toBe("video");
  for (const type of [
    "image/svg+xml",
    "application/pdf",
    "audio/mpegurl",
    "video/x-other",
    "application/xhtml+xml",
    "application/vnd.apple.mpegurl",
    "",
  ]) {
    expect(shownAs(type).kind).toBe("file");
  }
  expect(mediaTypeOf("Text/HTML; charset=utf-8")).toBe("text/html");
  expect(mediaTypeOf(null)).toBe("");
});

test("content is read as far as it is shown", async () => {
  expect(await contentOf("<script>", "text/html")).toEqual({
    kind: "text",
    mediaType: "text/html",
    text: "<script>",
  });
  const image = await contentOf(new Uint8Array([1, 2]), "image/png");
  expect(image).toEqual({ kind: "image", mediaType: "image/png", bytes: new Uint8Array([1, 2]) });
  const sound = await contentOf(new Uint8Array([3]), "audio/mpeg");
  expect(sound).toEqual({ kind: "audio", mediaType: "audio/mpeg", bytes: new Uint8Array([3]) });
  expect(await contentOf("<svg/>", "image/svg+xml")).toEqual({
    kind: "file",
    mediaType: "image/svg+xml",
  });
  expect((await contentOf("x".repeat((1 << 20) + 1), "text/plain")).kind).toBe("file");
});
