// The title of the tab, which each view sets.
import { createContext, useContext, useEffect } from "react";

/** Sets the title of the view that is shown. */
export const TitleContext = createContext<(title: string) => void>(() => undefined);

/** Names the view in the title of the tab. */
export function useTitle(title: string): void {
  const setTitle = useContext(TitleContext);
  useEffect(() => setTitle(title), [setTitle, title]);
}
