// Keys of the studio.
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { Keyboard, useShortcut } from "../../src/shell/keys.tsx";

afterEach(cleanup);

const go = vi.fn();
const next = vi.fn();

function Page() {
  useShortcut("g t", "Go to threads", go);
  useShortcut("j", "Next row", next);
  return (
    <>
      <input aria-label="field" />
      <Keyboard />
    </>
  );
}

function press(...keys: string[]): void {
  for (const key of keys) fireEvent.keyDown(document.body, { key });
}

test("keys work outside of text fields, with no modifier, and while their part is shown", () => {
  const { unmount } = render(<Page />);
  press("j", "g", "t");
  expect([next, go].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  press("t");
  fireEvent.keyDown(screen.getByLabelText("field"), { key: "j" });
  fireEvent.keyDown(document.body, { key: "j", ctrlKey: true });
  expect([next, go].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  unmount();
  press("j");
  expect(next).toHaveBeenCalledTimes(1);
});

test("a question mark lists the keys", async () => {
  render(<Page />);
  await act(async () => press("?"));
  screen.getByText("Go to threads");
  screen.getByText("Show the keys");
});
