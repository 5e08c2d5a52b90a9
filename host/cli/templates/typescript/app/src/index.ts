// The plugin of the app.

import { interrupt, node, plugin } from "wattle-plugin";
import * as z from "zod";

export const greet = node(
  "greet",
  {
    doc: "Greets a person.",
    input: z.object({ name: z.string() }),
    output: z.object({ greeting: z.string() }),
  },
  ({ name }) => ({ greeting: `Hello, ${name}!` }),
);

// The run is interrupted until the answer arrives.
export const approve = node(
  "approve",
  {
    doc: "Asks a person whether the greeting may be sent.",
    input: z.object({ greeting: z.string() }),
    output: z.object({ approved: z.boolean() }),
  },
  ({ greeting }) => ({ approved: interrupt.ask({ greeting }, z.boolean()) }),
);

export default plugin(greet, approve);
