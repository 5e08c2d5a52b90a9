// Entry of the page.
import { Shell, showPage } from "@wattle/page";

showPage(<Shell title="资产录入">{null}</Shell>);
