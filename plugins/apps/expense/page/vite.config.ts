// How the page is built: as all pages are.
import { appPage } from "../../../page/vite.ts";

export default appPage();
