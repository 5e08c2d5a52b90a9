// Entry of the page.
import { Shell, showPage } from "@wattle/page";

showPage(<Shell title="Wattle 应用">{null}</Shell>);
