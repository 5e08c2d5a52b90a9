// The language of the page: that of the browser, until the user chooses one.
import { usePersistent } from "@wattle/page";
import { useEffect } from "react";
import { TEXTS } from "./texts.ts";

export type Language = keyof typeof TEXTS;

function isLanguage(name: string): name is Language {
  return Object.hasOwn(TEXTS, name);
}

/** Returns the first language of the browser in which the page has texts, otherwise English. */
function browserLanguage(): Language {
  const names = navigator.languages.map((tag) => tag.split("-")[0]?.toLowerCase() ?? "");
  return names.find(isLanguage) ?? "en";
}

/** Returns the language, which is also set on the document, and the function that chooses one. */
export function useLanguage(): [Language, (language: Language) => void] {
  const [chosen, choose] = usePersistent<string>("wattle-language", "");
  const language = isLanguage(chosen) ? chosen : browserLanguage();
  useEffect(() => {
    document.documentElement.lang = TEXTS[language].lang;
  }, [language]);
  return [language, choose];
}
