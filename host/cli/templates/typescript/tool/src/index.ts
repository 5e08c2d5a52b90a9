// A plugin with a tool.

import { node, plugin, tool, tools } from "wattle-plugin";
import * as z from "zod";

const Count = z.object({ words: z.int() });

export const countWords = tool(
  "count_words",
  {
    description: "Counts the words of a text.",
    arguments: z.object({ text: z.string().describe("The text.") }),
    readOnly: true,
  },
  ({ text }) => ({ words: text.split(/\s+/).filter((word) => word !== "").length }),
);

export const call = node(
  "call",
  {
    doc: "Calls the tool as an agent does.",
    input: z.object({ text: z.string() }),
    output: Count,
  },
  ({ text }) => Count.parse(tools.call("{{name}}/count_words", { text }).structured),
);

export default plugin(countWords, call);
