// How the studio is built: as the pages of apps are.
import { appPage } from "../../plugins/page/vite.ts";

export default appPage();
