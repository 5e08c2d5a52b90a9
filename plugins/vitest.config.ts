// The tests of all pages, of what they share and of the SDK, as many at a time as there are cores.
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { projects: ["page", "apps/*/page", "sdk/typescript"] } });
