// Builds the page with the configuration of all pages.
import { appPage } from "../../../page/vite.ts";

export default appPage();
