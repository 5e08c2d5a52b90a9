// The configuration of zod in a component. The author's own configuration comes later and wins.

import { config } from "zod/v4/core";
import { en } from "zod/v4/locales";

// Each call is in an instance of its own, which would compile each type before its first use. A bundle
// without unused modules lacks the messages, which zod sets by the effect of a module.
config({ ...en(), jitless: true });
