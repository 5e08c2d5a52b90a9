// Stacks of exceptions. The build of a component tells to which lines of the plugin's files the lines of
// the component lead.

/**
 * The places of lines of a bundle, which the build appends to the bundle: the files, and for each run of
 * lines that follow each other its first line in the bundle, its length, its file and its first line
 * there.
 */
export interface Lines {
  /** Files, relative to the folder of the package. */
  files: string[];
  /** Runs of lines, ordered by their lines in the bundle. */
  runs: Array<[line: number, length: number, file: number, first: number]>;
}

/** Key of the global object under which a bundle has its {@link Lines}. */
export const LINES = "wattle:lines";

/**
 * Returns the frames of a stack. In a component they are those that lead to files of the plugin, such as
 * `countWords (src/index.ts:7)`. QuickJS writes frames as `at name (file:line:column)`, StarlingMonkey
 * as `name@file:line:column`. Engines may write other lines before them, such as the message.
 */
export function framesOf(stack: string): string[] {
  const lines = linesOfBundle();
  return stack.split("\n").flatMap((text) => {
    const frame = text.trim();
    const [, before = "", line] = /^(.*?):(\d+)(?::\d+)?\)?$/.exec(frame) ?? [];
    if (line === undefined) return [];
    if (lines === undefined) return [frame.replace(/^at /, "")];
    const place = lineOf(lines, Number(line));
    if (place === undefined) return [];
    // StarlingMonkey marks functions without a name of their own by the signs at the end.
    const [, name = ""] = /^(?:at )?(.*?)[</]*(?: \(|@)/.exec(before) ?? [];
    return name === "" || name.startsWith("<") ? [place] : [`${name} (${place})`];
  });
}

/** Returns the place in the plugin's files where a stack begins, for the end of a message. */
export function placeOf(stack: string): string {
  const [first] = linesOfBundle() === undefined ? [] : framesOf(stack);
  const place = first?.replace(/^.* \(|\)$/g, "");
  return place === undefined ? "" : ` (${place})`;
}

function linesOfBundle(): Lines | undefined {
  return (globalThis as unknown as Record<string, Lines | undefined>)[LINES];
}

function lineOf({ files, runs }: Lines, line: number): string | undefined {
  const run = runs.findLast(([start, length]) => line >= start && line < start + length);
  if (run === undefined) return undefined;
  const [start, , file, first] = run;
  return `${files[file]}:${first + line - start}`;
}
