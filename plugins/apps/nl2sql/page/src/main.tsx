// Entry of the page.
import { Shell, showPage } from "@wattle/page";

showPage(<Shell title="数据问答">{null}</Shell>);
