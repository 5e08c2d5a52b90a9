// Light or dark: the theme of the system, until the user chooses one.
import { useEffect } from "react";
import { usePersistent } from "../hook/persistent.ts";
import "./theme.css";

export type Theme = "system" | "light" | "dark";

const KEY = "wattle-theme";
const NEXT = { system: "light", light: "dark", dark: "system" } as const;
const NAMES = { system: "跟随系统", light: "浅色", dark: "深色" } as const;
const SIGNS = { system: "◐", light: "☀", dark: "☾" } as const;

/** Returns the theme that the user chose, and applies it to the document. */
export function useTheme(): [Theme, (theme: Theme) => void] {
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
  const [theme, setTheme] = useTheme();
  const label = `主题：${NAMES[theme]}`;
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
