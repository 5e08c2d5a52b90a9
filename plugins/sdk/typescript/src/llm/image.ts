// Image generation.

import * as host from "#host/llm";
import type { BlobRef } from "../blob.ts";
import type { Extra } from "../json.ts";

/** What a request for images has besides its route and prompt. */
export interface ImageOptions {
  /** Number of images; 1 by default. */
  count?: number;
  /** Aspect ratio, such as `16:9`; without it, the default of the provider. */
  aspectRatio?: string;
  /** Extension fields: `candidate`, `retries` and `timeout_ms`, as for model calls. */
  extra?: Extra;
}

/** A request for generated images. */
export interface ImageRequest {
  /** Name of the route. */
  route: string;
  /** Prompt for the images. */
  prompt: string;
  /** Number of images. */
  count: number;
  /** Aspect ratio, such as `16:9`. */
  aspectRatio: string | undefined;
  /** Extension fields. */
  extra: Extra;
}

/** The fields of a {@link GeneratedImage}. */
export interface GeneratedImageFields {
  /** Blob with the data. */
  blob: BlobRef;
  /** Media type, such as `image/png`. */
  mediaType: string;
  /** Extension fields. */
  extra: Extra;
}

/** A generated image. */
export class GeneratedImage implements GeneratedImageFields {
  readonly blob: BlobRef;
  readonly mediaType: string;
  readonly extra: Extra;

  /** Creates an image. */
  constructor(fields: GeneratedImageFields) {
    this.blob = fields.blob;
    this.mediaType = fields.mediaType;
    this.extra = fields.extra;
  }

  /**
   * Returns the path under which the host serves the image, like `blob.link`. Empty if the host does
   * not provide one.
   */
  link(): string {
    return this.#text("link");
  }

  /** Returns the name of the provider. Empty if the host does not report it. */
  provider(): string {
    return this.#text("provider");
  }

  /** Returns the name of the model. Empty if the host does not report it. */
  model(): string {
    return this.#text("model");
  }

  #text(key: string): string {
    const text = this.extra[key];
    return typeof text === "string" ? text : "";
  }
}

/**
 * Generates images. The host stores them as blobs.
 *
 * ```ts
 * import { llm } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const bytes = new Uint8Array([0x89, 0x50]);
 * const host = new FakeHost().images(() => [{ mediaType: "image/png", bytes }]);
 * host.run(() => {
 *   const images = llm.generateImages("images", "a harbor at dawn");
 *   assert.equal(images[0]?.mediaType, "image/png");
 * });
 * ```
 */
export function generateImages(
  route: string,
  prompt: string,
  options: ImageOptions = {},
): GeneratedImage[] {
  const { count = 1, aspectRatio, extra = {} } = options;
  return host.generateImages({ route, prompt, count, aspectRatio, extra });
}
