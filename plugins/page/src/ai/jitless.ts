// `ai` validates its input with zod, which compiles functions from text if it may. The policy of a
// page forbids that, and a browser reports the attempt. zod decides this when a schema is created,
// so a page that uses `ai` imports this module first.
import { config } from "zod/v4/core";

config({ jitless: true });
