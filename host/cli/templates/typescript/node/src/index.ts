// The plugin of the app.

import { node, plugin } from "wattle-plugin";
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

export default plugin(greet);
