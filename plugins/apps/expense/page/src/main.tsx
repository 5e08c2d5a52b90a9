// Entry of the page.
import { Shell, showPage } from "@wattle/page";

showPage(<Shell title="记账助手">{null}</Shell>);
