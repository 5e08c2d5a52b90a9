// Entry of the page.
import { showPage } from "@wattle/page";
import { App } from "./app.tsx";

showPage(<App />);
