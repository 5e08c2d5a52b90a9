// Build configuration that all pages share.
import { appPage } from "../../../page/vite.ts";

export default appPage();
