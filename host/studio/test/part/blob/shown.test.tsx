// Blobs, as a user sees, hears and downloads them.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Blobs } from "../../../src/part/blob/blob.tsx";

const NAME = "ab".repeat(6);

const ADDRESS = "blob:made";

/** The content of each address that was made. */
let made: Blob[];
/** The names of the files that were downloaded. */
let names: string[];

beforeEach(() => {
  [made, names] = [[], []];
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => {
    made.push(blob as Blob);
    return ADDRESS;
  });
  vi.spyOn(URL, "revokeObjectURL").mockReturnValue();
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (
    this: HTMLAnchorElement,
  ) {
    names.push(this.download);
  });
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Shows a document with one blob. */
function showBlob(content: string, type: string): void {
  vi.stubGlobal("fetch", async () => new Response(content, { headers: { "content-type": type } }));
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <Blobs thread="t1" tenant={undefined} value={`blob:${"ab".repeat(32)}`} />
    </QueryClientProvider>,
  );
}

const press = (what: string) => fireEvent.click(screen.getByRole("button", { name: what }));

test.each([
  { element: "audio", type: "audio/mpeg" },
  { element: "video", type: "video/webm" },
])("$element is played on request, as its media type", async ({ element, type }) => {
  showBlob("<script>", `${type}; codecs=x`);
  expect(made).toEqual([]);
  press(`Show blob ${NAME}`);
  const player = await screen.findByLabelText(`Blob ${NAME}`);
  expect(player.localName).toBe(element);
  expect(player.getAttribute("src")).toBe(ADDRESS);
  expect(player.hasAttribute("controls")).toBe(true);
  expect(player.hasAttribute("autoplay")).toBe(false);
  expect(made.map((blob) => blob.type)).toEqual([type]);
  fireEvent.error(player);
  await screen.findByText(/nothing that the browser can play/);
  expect(screen.queryByLabelText(`Blob ${NAME}`)).toBeNull();
});

test.each([
  { type: "application/pdf", ending: ".pdf" },
  { type: "image/svg+xml", ending: "" },
])("a file of the type $type is saved, and not opened", async ({ type, ending }) => {
  showBlob("<script>", type);
  press(`Show blob ${NAME}`);
  await screen.findByText(/Download it/);
  expect(made).toEqual([]);
  press(`Download blob ${NAME}`);
  await waitFor(() => expect(names).toEqual([`blob-${NAME}${ending}`]));
  expect(made.map((blob) => blob.type)).toEqual(["application/octet-stream"]);
});
