// The tests of all pages, of what they share, of the SDK and of the studio, as many at a time as
// there are cores.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Vitest finds the modules of a project only below its root, and the studio is beside this folder.
const root = fileURLToPath(new URL("..", import.meta.url));

const pages = ["page", "apps/*/page", "sdk/typescript"].map((folder) => `plugins/${folder}`);

// A cache below that root would be beside the folders of the repository.
const cacheDir = "plugins/node_modules/.vite";

export default defineConfig({ root, cacheDir, test: { projects: [...pages, "host/studio"] } });
