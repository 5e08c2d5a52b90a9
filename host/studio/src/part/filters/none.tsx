// What is said in place of the rows of an empty list.
import { RouteLink } from "../../router/links.tsx";
import { TEXTS } from "./texts.ts";

interface NoneProps {
  isFiltered: boolean;
  /** What is said of a list without a filter, and of one with a filter. */
  texts: { none: string; noneMatch: string };
  /** Route of the list without a filter. */
  cleared: string;
}

/** Says that there is nothing, or that nothing matches the filters. */
export function None({ isFiltered, texts, cleared }: NoneProps) {
  if (!isFiltered) return <p>{texts.none}</p>;
  return (
    <p>
      {texts.noneMatch} <RouteLink to={cleared}>{TEXTS.clear}</RouteLink>
    </p>
  );
}
