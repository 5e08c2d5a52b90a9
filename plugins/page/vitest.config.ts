// The package itself is not built; its tests run as those of a page do.
import { appPage } from "./vite.ts";

export default appPage();
