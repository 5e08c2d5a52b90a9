// The build of components, with the command that authors use.

import { execFile } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, describe, expect, test, vi } from "vitest";
import { bundleGuest } from "../build/bundle.mjs";
import { main } from "../build/cli.mjs";
import { linesOf, placesIn } from "../build/lines.mjs";
import { withSection } from "../build/section.mjs";
import { worldOf } from "../build/world.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));

const folders = [];

/** Makes the folder of a plugin, which has the packages of the workspace. */
function project(files) {
  const folder = mkdtempSync(join(tmpdir(), "plugin-"));
  folders.push(folder);
  symlinkSync(PACKAGES, join(folder, "node_modules"), "dir");
  for (const [file, text] of Object.entries({ "package.json": '{"name":"@me/trial"}', ...files })) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  return folder;
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Runs the command in a folder. Returns what it printed, and its exit status. */
async function command(folder, ...args) {
  const stdout = vi.spyOn(console, "log").mockReturnValue();
  const stderr = vi.spyOn(console, "error").mockReturnValue();
  try {
    const status = await main(args, folder);
    const text = ({ mock }) => mock.calls.join("\n");
    return { status, stdout: text(stdout), stderr: text(stderr) };
  } finally {
    vi.restoreAllMocks();
  }
}

const HEAD = 'import { clock, node, plugin } from "wattle-plugin";\nimport * as z from "zod";\n';

describe("the command", () => {
  test("the example becomes a component with its interfaces and manifest", async () => {
    const folder = project({});
    cpSync(join(PACKAGE, "example/src"), join(folder, "src"), { recursive: true });
    const program = [join(PACKAGE, "bin/wattle-plugin.mjs"), "build", "--out", "words.wasm"];
    const run = promisify(execFile)(process.execPath, program, { cwd: folder });
    const { stdout, stderr } = await run;
    expect(stderr).toBe("");
    // `wattle build` lists the nodes.
    expect(stdout).not.toContain("count_words");
    expect(stdout).toContain("imports   clock, interrupt, llm, log, random, runs");
    const component = readFileSync(join(folder, "words.wasm"));
    // The header of a component, in the layer of components.
    expect([...component.subarray(0, 8)]).toEqual([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]);
    for (const name of ["node", "tool", "reducer", "web", "llm"]) {
      expect(component.includes(`wattle:plugin/${name}@0.1.0`)).toBe(true);
    }
    for (const name of ["sql", "http", "tenants"]) {
      expect(component.includes(`wattle:plugin/${name}@0.1.0`)).toBe(false);
    }
    const manifest = 'wattle:manifestllm = ["chat"]\n';
    expect(component.subarray(-manifest.length).toString()).toBe(manifest);
  });

  test.each([
    ["no default export", HEAD, "no default export of `plugin(...)`"],
    ["a host call", `${HEAD}clock.nowMs();\nexport default plugin();`, "src/index.ts:3"],
    ["a process that ends", `${HEAD}process.exit(0);`, "ended the process"],
    ["a wrong syntax", `${HEAD}const a = ;`, "src/index.ts:3:10"],
  ])("a plugin with %s is refused", async (_, source, message) => {
    const { status, stderr } = await command(project({ "src/index.ts": source }), "build");
    expect(status).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("wattle-entry.js");
  });

  test("a signal that ends the loading process is named, with what the process printed", async () => {
    const source = `${HEAD}console.error("out of memory");\nprocess.kill(process.pid, "SIGKILL");`;
    const { status, stderr } = await command(project({ "src/index.ts": source }), "build");
    expect(status).toBe(1);
    expect(stderr).toContain("SIGKILL ended the process that loads the plugin:\nout of memory");
    expect(stderr).not.toContain("seconds");
  });

  test.each([
    [["build", "--engine", "v8"], "known: quickjs, starlingmonkey"],
    [["build", "--fast"], "usage: wattle-plugin build"],
    [["publish"], "usage: wattle-plugin build"],
  ])("the arguments %j are refused", async (args, message) => {
    const { status, stderr } = await command(project({}), ...args);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
  });

  test("an engine that is not installed is named with its package", async () => {
    const source = `${HEAD}export default plugin(node("n", {}, () => ({})));`;
    const folder = project({ "src/index.ts": source });
    const { status, stderr } = await command(folder, "build", "--engine", "starlingmonkey");
    expect(status).toBe(1);
    expect(stderr).toContain("npm install --save-dev @bytecodealliance/componentize-js");
  });
});

describe("bundles", () => {
  test("a bundle imports only the interfaces that it uses, and files as text", async () => {
    const folder = project({ "a.md": "text of a file" });
    const contents = `
      import { settings } from "wattle-plugin";
      import TEXT from "./a.md?raw";
      export const f = () => [settings.all(), TEXT];
    `;
    const { code, imports, notes } = await bundleGuest({ folder, contents });
    expect(imports).toEqual(["settings"]);
    expect(code).toContain("text of a file");
    expect(code).not.toContain("FakeHost");
    expect(notes).toEqual([]);
  });

  test("messages in other languages are pointed out", async () => {
    const contents = 'import { z } from "zod"; export const type = z.string();';
    const { notes } = await bundleGuest({ folder: project({}), contents });
    expect(notes[0]).toContain('import * as z from "zod"');
  });

  test("modules of Node.js are refused with their place", async () => {
    const contents = 'import { readFileSync } from "node:fs"; readFileSync("a");';
    const bundle = bundleGuest({ folder: project({}), contents });
    await expect(bundle).rejects.toThrow("`node:fs` is a module of Node.js");
  });

  test("lines of a bundle lead to files of the plugin", async () => {
    const folder = project({
      "src/a.ts": "// A comment.\n\nexport function a(): number {\n  return missing.b;\n}\n",
      "src/b.ts":
        'import { a } from "./a.ts";\n\ntype B = 1;\n\nexport const b = () => a();\n' +
        'export const c = String(\n  "c",\n  () => missing.d,\n);\n',
    });
    const bundle = await bundleGuest({ folder, contents: 'export { b, c } from "./src/b.ts";' });
    const lines = linesOf(bundle.map, folder);
    expect(lines.files.sort()).toEqual(["src/a.ts", "src/b.ts"]);
    const lineOf = (text) => {
      return bundle.code.split("\n").findIndex((line) => line.includes(text)) + 1;
    };
    const stack = `Error: x\n    at a (/tmp/plugin.js:${lineOf("missing.b")}:10)\n    at (/plugin.js:9999:1)`;
    expect(placesIn(stack, lines)).toBe("Error: x\n    at a (src/a.ts:4)");
    expect(placesIn(`b@plugin.js:${lineOf("=> a()")}:3`, lines)).toContain("b@src/b.ts:5");
    // Code after the indentation of a line.
    expect(placesIn(`c@plugin.js:${lineOf("missing.d")}:9`, lines)).toBe("c@src/b.ts:8");
  });
});

describe("components", () => {
  test("a world has the interfaces in use", () => {
    const world = worldOf({
      exported: [{ name: "node" }, { name: "web" }],
      imports: ["log", "sql"],
    });
    expect(world).toBe(
      "package wattle:guest;\n\nworld component {\n" +
        "    import wattle:plugin/log@0.1.0;\n    import wattle:plugin/sql@0.1.0;\n" +
        "    export wattle:plugin/node@0.1.0;\n    export wattle:plugin/web@0.1.0;\n}\n",
    );
  });

  test("a section has its length in LEB128", () => {
    const text = "x".repeat(200);
    const bytes = withSection(Buffer.from([1]), "name", text);
    expect([...bytes.subarray(0, 5)]).toEqual([1, 0, 0xcd, 0x01, 4]);
    expect(bytes.subarray(5).toString()).toBe(`name${text}`);
  });
});
