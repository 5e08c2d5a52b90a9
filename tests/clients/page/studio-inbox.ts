// Reviewers at the inbox of the studio: fifty questions by keyboard, and two people at once; see
// `visit.ts`.
import assert from "node:assert/strict";
import type { Locator, Page, Route } from "playwright-core";
import { logIn } from "./studio.ts";
import { parameter, run, textOf, Visit, valueAt } from "./visit.ts";

/** The number of questions. That of a thread is in its name, such as `q07`. */
const COUNT = 50;

/** How a question is answered: by a key, by a key and a text, or by a form. */
type Way = "approve" | "reject" | "reason" | "form";

/** Returns how the question of a thread is answered, as its schema wants it. */
function wayOf(thread: string): Way {
  const number = Number(thread.slice(1));
  if (number % 10 === 0) return "reason";
  if (number % 10 === 5) return "form";
  return number % 3 === 0 ? "reject" : "approve";
}

const ANSWERS: Record<Way, unknown> = {
  approve: true,
  reject: false,
  reason: { decision: "reject", message: "not now" },
  form: { count: 3, name: "Jane" },
};

/** The selected question, which has the name of its thread. */
const question = (page: Page): Locator => page.locator("[data-thread]");

/** Logs in with the key that the address has under a name, and goes to the inbox. */
async function enter(visit: Visit, who: string): Promise<void> {
  const { page } = visit;
  visit.expect(/status of 401/);
  await logIn(page, parameter(visit.url, who));
  await page.locator('[data-app="misdeeds"]').waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.getByRole("list", { name: "Pending questions" }).getByRole("link").first().waitFor();
}

/** Returns the name of the thread of the selected question. */
async function selected(page: Page): Promise<string> {
  await question(page).waitFor();
  return (await question(page).getAttribute("data-thread")) ?? "";
}

/** Whether a field of the answer has the focus. */
const waitForField = (page: Page, label: string) =>
  page.getByLabel(label).and(page.locator(":focus")).waitFor();

/** Answers the selected question by keys. */
async function answer(page: Page, way: Way): Promise<void> {
  const { keyboard } = page;
  if (way === "approve" || way === "reject") {
    await keyboard.press(way === "approve" ? "a" : "r");
  } else if (way === "reason") {
    await keyboard.press("r");
    await waitForField(page, "message (optional)");
    await keyboard.type("not now");
    await keyboard.press("Control+Enter");
  } else {
    await keyboard.press("Enter");
    await waitForField(page, "count");
    await keyboard.type("three");
    await keyboard.press("Tab");
    await keyboard.type("Jane");
    await keyboard.press("Control+Enter");
    await page.getByText("Enter a number such as 12 or 3.5.").waitFor();
    await waitForField(page, "count");
    await keyboard.press("Control+A");
    await keyboard.type("3");
    await keyboard.press("Control+Enter");
  }
}

/** Gives the focus to the row of the selected question again, which a telephone does not show. */
async function comeBack(page: Page, thread: string): Promise<void> {
  await page.keyboard.press("j");
  await page.locator(`[data-thread]:not([data-thread="${thread}"])`).waitFor();
  await page.keyboard.press("k");
  await page.locator(`[data-thread="${thread}"]`).waitFor();
}

/** A reviewer works off all questions, and touches nothing but keys. */
async function worksOff(visit: Visit): Promise<void> {
  const { page } = visit;
  await enter(visit, "anna");
  await page.getByText(/^50( or more)? pending$/).waitFor();
  await page.keyboard.press("j");
  await selected(page);
  await visit.look("inbox");
  await page.keyboard.press("?");
  const help = page.getByRole("dialog");
  for (const text of ["Approve", "Reject", "Next question", "Send the answer, in a field"]) {
    await help.getByText(text, { exact: true }).waitFor();
  }
  await page.keyboard.press("Escape");
  await comeBack(page, await selected(page));
  const looked = new Set<Way>();
  for (let left = COUNT; left > 0; left -= 1) {
    const thread = await selected(page);
    const way = wayOf(thread);
    if (way === "reason" && !looked.has(way)) await visit.look("inbox-approval");
    if (way === "form" && !looked.has(way)) {
      await visit.look("inbox-form");
      await visit.lookWide("inbox-form");
      await comeBack(page, thread);
    }
    looked.add(way);
    await answer(page, way);
    if (left > 1) await page.locator(`[data-thread]:not([data-thread="${thread}"])`).waitFor();
  }
  await page.getByText("No question is pending.").waitFor();
  await visit.look("inbox-empty");
  const sent = visit.sent.map(([, path, body]) => [
    path,
    Object.values(Object(valueAt(body, "answers"))),
  ]);
  const expected = Array.from({ length: COUNT }, (_, index) => {
    const thread = `q${String(index).padStart(2, "0")}`;
    return [`/api/v1/threads/${thread}/resume`, [ANSWERS[wayOf(thread)]]];
  });
  const byPath = (one: unknown[], other: unknown[]) =>
    String(one[0]).localeCompare(String(other[0]));
  assert.deepEqual(sent.sort(byPath), expected, "each question has one answer");
}

/** Opens the same page for another user, with storage of its own. */
async function another(visit: Visit): Promise<Visit> {
  const { url, viewport } = visit;
  const browser = visit.page.context().browser();
  assert.ok(browser, "the page belongs to a browser");
  return Visit.open(browser, { url, viewport, looks: [viewport], locale: "zh-CN" });
}

/** Two people answer the same question: one wins, and the other is told who was faster. */
async function competes(visit: Visit): Promise<void> {
  const other = await another(visit);
  await enter(visit, "anna");
  await enter(other, "ben");
  const [anna, ben] = [visit.page, other.page];
  const told = (page: Page, who: string) => {
    const id = parameter(visit.url, `${who}-id`);
    return page.getByText(`The key ${who} (${id}) has answered this question.`).waitFor();
  };
  await anna.keyboard.press("j");
  await ben.keyboard.press("j");
  const first = await selected(anna);
  assert.equal(await selected(ben), first, "both have the same question");
  // The other one learns nothing before he answers.
  const held: Route[] = [];
  await ben.route(/\/api\/v1\/interrupts/, (route) => void held.push(route));
  await anna.keyboard.press("a");
  await anna.locator(`[data-thread]:not([data-thread="${first}"])`).waitFor();
  other.expect(/status of 409/);
  await ben.keyboard.press("r");
  await told(ben, "anna");
  assert.equal(await textOf(ben.getByRole("group", { name: "The answer" })), "true");
  await other.look("inbox-lost");
  await ben.unroute(/\/api\/v1\/interrupts/);
  await Promise.allSettled(held.map((route) => route.continue()));
  // The next question is open at both. Who does not answer is told, too, and can change nothing.
  await ben.getByRole("button", { name: "Go to the next question" }).click();
  const second = await selected(ben);
  assert.equal(await selected(anna), second, "both have the next question");
  await ben.keyboard.press("r");
  await told(anna, "ben");
  await anna.keyboard.press("a");
  await told(anna, "ben");
  await visit.look("inbox-told");
  assert.equal(visit.sent.length, 1, "the question that disappeared was not answered again");
  await other.close();
}

await run({ works_off: worksOff, competes });
