// Tests of the package, which is not built, run with the configuration of a page.
import { appPage } from "./vite.ts";

export default appPage();
