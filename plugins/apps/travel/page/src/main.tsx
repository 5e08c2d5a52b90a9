// Entry of the page.
import { Shell, showPage } from "@wattle/page";

showPage(<Shell title="旅行手册">{null}</Shell>);
