// Entry of the page.
import { Shell, showPage } from "@wattle/page";

showPage(<Shell title="业务推理">{null}</Shell>);
