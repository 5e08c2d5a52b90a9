// The build of every page: one entry document, files with immutable names below `assets/`, and a
// compressed sibling of each file that becomes smaller by it.
//
// The Content-Security-Policy of a page allows no inline script, no inline style and no other
// origin, so nothing is inlined and nothing is loaded from other origins.
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin, type UserConfig } from "vite";

/** Files up to this size are not compressed. */
const SMALLEST_BYTES = 1024;

/** Files that become smaller by compression. */
const COMPRESSIBLE = /\.(html|js|css|svg|json|txt|map)$/;

/** The oldest browsers that support `light-dark()` and `<dialog>`. */
const TARGET = ["chrome123", "firefox121", "safari17.5"];

/** Writes `<file>.br` and `<file>.gz` next to each large file of the output. */
export function compress(): Plugin {
  return {
    name: "wattle-compress",
    apply: "build",
    writeBundle({ dir }) {
      if (dir === undefined) throw new Error("the output has no folder");
      for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !COMPRESSIBLE.test(entry.name)) continue;
        compressFile(join(entry.parentPath, entry.name));
      }
    },
  };
}

/** The folder that the host serves, the one that a build writes, and the replaced one. */
const SERVED = "dist";
const WRITTEN = "dist.part";
const REPLACED = "dist.old";

/**
 * Replaces the previous build as a whole. A host that loads the app meanwhile finds the old page or
 * the new one, and never half of one.
 */
export function replace(): Plugin {
  let root = ".";
  return {
    name: "wattle-replace",
    apply: "build",
    configResolved(config) {
      root = config.root;
    },
    closeBundle(error) {
      if (error !== undefined) return;
      const served = join(root, SERVED);
      const old = join(root, REPLACED);
      rmSync(old, { recursive: true, force: true });
      if (existsSync(served)) renameSync(served, old);
      renameSync(join(root, WRITTEN), served);
      rmSync(old, { recursive: true, force: true });
    },
  };
}

/** The icon of all pages, which browsers request in any case. */
export function icon(): Plugin {
  const name = "icon.svg";
  return {
    name: "wattle-icon",
    apply: "build",
    buildStart() {
      const source = readFileSync(new URL(name, import.meta.url));
      this.emitFile({ type: "asset", name, source });
    },
    transformIndexHtml: {
      order: "post",
      handler(_, { bundle = {} }) {
        const file = Object.values(bundle).find(
          (output) => output.type === "asset" && output.names.includes(name),
        );
        if (file === undefined) throw new Error("the icon is not among the output");
        const attrs = { rel: "icon", type: "image/svg+xml", href: `./${file.fileName}` };
        return [{ tag: "link", attrs, injectTo: "head" }];
      },
    },
  };
}

function compressFile(file: string): void {
  const content = readFileSync(file);
  if (content.length <= SMALLEST_BYTES) return;
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
  };
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params }));
  writeFileSync(`${file}.gz`, gzipSync(content, { level: constants.Z_BEST_COMPRESSION }));
}

/** Hides warnings about directives of libraries for server code, which have no effect here. */
function withoutDirectives(
  level: LogLevel,
  log: { code?: string },
  handler: (level: LogLevel, log: { code?: string }) => void,
): void {
  if (log.code !== "MODULE_LEVEL_DIRECTIVE") handler(level, log);
}

type LogLevel = "info" | "debug" | "warn";

/** Returns the configuration of a page. `more` adds to it. */
export function appPage(more: UserConfig = {}): UserConfig {
  return defineConfig({
    ...more,
    // The host writes a `<base>` into the entry document, so every URL is relative to it.
    base: "./",
    plugins: [...(more.plugins ?? []), icon(), compress(), replace()],
    build: {
      target: TARGET,
      outDir: WRITTEN,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // `wattle-page size` checks the size of the first view, which is what matters.
      chunkSizeWarningLimit: 2_000,
      // `wattle-page size` reads from it which files the first view loads. The host serves no name
      // that begins with a dot, such as Vite's default.
      manifest: "manifest.json",
      rolldownOptions: { onLog: withoutDirectives },
      ...more.build,
    },
    test: { environment: "happy-dom", include: ["test/**/*.test.{ts,tsx}"] },
  } as UserConfig);
}
