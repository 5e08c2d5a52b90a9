// `ai` checks what it reads with zod, which makes functions from text where it may. The policy of
// a page forbids that, and a browser reports the attempt. So this is the first import of a page
// that uses `ai`: zod decides when a schema is made.
import { config } from "zod/v4/core";

config({ jitless: true });
