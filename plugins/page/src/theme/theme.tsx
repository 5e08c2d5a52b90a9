// Light or dark: the theme of the system, until the user chooses one.
import { useEffect } from "react";
import { usePersistent } from "../hook/persistent.ts";
import { useTexts } from "../language/language.ts";
import "./theme.css";

type Theme = "system" | "light" | "dark";

const KEY = "wattle-theme";
const NEXT = { system: "light", light: "dark", dark: "system" } as const;
const SIGNS = { system: "◐", light: "☀", dark: "☾" } as const;

/** Returns the theme that the user chose, and applies it to the document. */
function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = usePersistent<Theme>(KEY, "system");
  const known = theme in NEXT ? theme : "system";
  useEffect(() => {
    if (known === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = known;
  }, [known]);
  return [known, setTheme];
}

/** A button that cycles through the themes. */
export function ThemeToggle() {
  const texts = useTexts();
  const [theme, setTheme] = useTheme();
  const label = texts.theme(texts.themes[theme]);
  return (
    <button
      type="button"
      className="w-icon-button"
      aria-label={label}
      title={label}
      onClick={() => setTheme(NEXT[theme])}
    >
      <span aria-hidden="true">{SIGNS[theme]}</span>
    </button>
  );
}
