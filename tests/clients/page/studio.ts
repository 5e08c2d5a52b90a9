// What the browser programs of the studio share.
import type { Locator, Page } from "playwright-core";

/** The key of the configuration, as the test sets it. */
export const KEY = "studio-operator-key";

/** The navigation between the views. */
export const main = (page: Page): Locator => page.getByRole("navigation", { name: "Main" });

/** The panel beside a view, which shows one of its rows or items. */
export const panel = (page: Page): Locator => page.getByRole("complementary");

/** The link to a view of a run. */
export const viewOfRun = (page: Page, name: string): Locator =>
  page.getByRole("navigation", { name: "Views of the run" }).getByRole("link", { name });

/** Closes the panel beside a view. */
export async function closePanel(page: Page): Promise<void> {
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "detached" });
}

/** Logs in with a key. */
export async function logIn(page: Page, key: string): Promise<void> {
  await page.getByLabel("API key").fill(key);
  await page.keyboard.press("Enter");
}
