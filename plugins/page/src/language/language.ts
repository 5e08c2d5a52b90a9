// The language of this package's texts: that of the document.
import { useSyncExternalStore } from "react";
import { TEXTS, type Texts } from "./texts.ts";

/** Returns English if the document names a language other than Chinese, otherwise Chinese. */
function language(): keyof typeof TEXTS {
  const { lang } = document.documentElement;
  return lang === "" || /^zh\b/i.test(lang) ? "zh" : "en";
}

function watch(watcher: () => void): () => void {
  const observer = new MutationObserver(watcher);
  observer.observe(document.documentElement, { attributeFilter: ["lang"] });
  return () => observer.disconnect();
}

/** Returns the texts in the language that the document has now, for code outside of components. */
export function texts(): Texts {
  return TEXTS[language()];
}

/** Returns the texts in the language of the document. A change of its `lang` renders again. */
export function useTexts(): Texts {
  return TEXTS[useSyncExternalStore(watch, language)];
}
