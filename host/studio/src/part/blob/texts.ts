// The texts of blobs.

export const TEXTS = {
  blobs: "Blobs",
  blob: (name: string) => `Blob ${name}`,
  show: (name: string) => `Show blob ${name}`,
  hide: (name: string) => `Hide blob ${name}`,
  download: (name: string) => `Download blob ${name}`,
  reading: "Reading the blob…",
  file: (mediaType: string) =>
    `The studio does not show this content${mediaType === "" ? "" : ` (${mediaType})`}. Download it.`,
  broken: "The content is not an image that the browser can show. Download it.",
  unplayable: "The content is nothing that the browser can play. Download it.",
  more: "Show more",
  listed: (count: number) => `Only the first ${count} blobs are listed.`,
};
