// The tests of all pages and of what they share, as many at a time as there are cores.
import { defineConfig } from "vitest/config";

export default defineConfig({ test: { projects: ["page", "apps/*/page"] } });
