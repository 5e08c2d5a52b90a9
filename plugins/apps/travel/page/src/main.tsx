// Entry of the page.
import "@wattle/page/ai";
import { showPage } from "@wattle/page";
import { App } from "./app.tsx";

showPage(<App />);
