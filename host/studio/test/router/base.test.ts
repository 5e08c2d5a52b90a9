// The place of the studio on its origin.
import { afterEach, expect, test } from "vitest";
import { basepath, enterBase, hostAddress, hostPath } from "../../src/router/base.ts";

afterEach(() => {
  document.head.replaceChildren();
  history.replaceState(null, "", "/");
});

function base(href: string): void {
  const element = document.createElement("base");
  element.setAttribute("href", href);
  document.head.append(element);
}

test("the API and the paths of the host are beside the studio, behind a prefix, too", () => {
  base("/prefix/studio/");
  expect(basepath()).toBe("/prefix/studio/");
  expect(new URL(hostAddress()).pathname).toBe("/prefix/");
  expect(new URL(hostPath("/apps/a/") ?? "").pathname).toBe("/prefix/apps/a/");
});

test("a path that leads to another origin is none", () => {
  for (const path of ["//evil.test/", "/\\evil.test", "https://evil.test", "javascript:alert(1)"]) {
    expect(hostPath(path)).toBeUndefined();
  }
});

test("the studio at the root of the host moves to its own path", () => {
  base("/studio/");
  enterBase();
  expect(location.pathname).toBe("/studio/");
  history.replaceState(null, "", "/studio/threads?status=error");
  enterBase();
  expect(location.pathname + location.search).toBe("/studio/threads?status=error");
});
