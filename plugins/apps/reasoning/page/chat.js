// The conversation: what the next message of the user does depends on what was asked back.

/** Milliseconds between two looks at the trail while something runs. */
const LOOK_MS = 1000;

const PLACEHOLDERS = { ask: "例如：统计各区域的客户数量", answer: "请回答上面的问题" };

const audit = new Audit();
const log = found("log");
const question = found("question");

const chat = {
  session: null,
  /** The question back to the user that the next message answers. */
  awaitingClarification: null,
  isRunning: false,
};

function show(...elements) {
  log.querySelector(".welcome")?.remove();
  log.append(...elements);
  log.scrollTop = log.scrollHeight;
}

function paint() {
  const { session, awaitingClarification, isRunning } = chat;
  found("session").textContent = session ? `会话 ${session}` : "尚未开始会话";
  found("awaiting").hidden = !awaitingClarification;
  found("question-label").textContent = awaitingClarification ? "补充信息" : "问题";
  question.placeholder = awaitingClarification ? PLACEHOLDERS.answer : PLACEHOLDERS.ask;
  found("send").hidden = isRunning;
  found("stop").hidden = !isRunning;
  found("stop").disabled = !session;
  found("fresh").disabled = isRunning;
  log.setAttribute("aria-busy", String(isRunning));
}

function open(session) {
  chat.session = session;
  audit.follow(session);
  paint();
}

/** Sends a message: an answer, the first of a session, or a further question. */
async function send(text) {
  if (chat.awaitingClarification) {
    await api.clarify(chat.session, text);
    chat.awaitingClarification = null;
    paint();
    return api.run(chat.session, {});
  }
  if (chat.session) return api.run(chat.session, { user_input: text });
  open((await api.create(text)).session_id);
  return api.run(chat.session, {});
}

/** Does something that ends as a run does, and shows how it ended. */
async function perform(text, act) {
  chat.isRunning = true;
  paint();
  // Only the newest failure can be tried again: the session goes on from there.
  for (const retry of log.querySelectorAll(".failed button")) retry.remove();
  const wait = working();
  show(wait);
  const looks = setInterval(() => audit.isOpen && audit.refresh(), LOOK_MS);
  try {
    const data = await act();
    chat.awaitingClarification = data.clarification ?? null;
    show(data.clarification ? asking(data.clarification) : completed(data.result));
  } catch (refused) {
    await settle(text, refused);
  } finally {
    clearInterval(looks);
    wait.remove();
    chat.isRunning = false;
    paint();
    question.focus();
    await audit.refresh();
  }
}

/** Something went wrong: the session knows how far it came. */
async function settle(text, refused) {
  const known = chat.session ? await api.show(chat.session).catch(() => null) : null;
  if (known?.status === "cancelled") {
    show(notice("已停止。下一条消息将开始新的会话。"));
    chat.awaitingClarification = null;
    chat.session = null;
    return;
  }
  if (known) chat.awaitingClarification = known.clarification ?? null;
  const mayRetry = known?.turn?.status === "failed" && known.turn.user_input.endsWith(text);
  if (!mayRetry) question.value ||= text;
  show(failed(refused, mayRetry && retrying(text)));
}

/** A failed turn can run again, once for each time it failed. */
function retrying(text) {
  return (event) => {
    if (chat.isRunning) return;
    event.currentTarget.remove();
    perform(text, () => api.run(chat.session, {}));
  };
}

function startOver() {
  open(null);
  chat.awaitingClarification = null;
  log.replaceChildren(welcome());
  paint();
  question.focus();
}

found("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = question.value.trim();
  if (!text || chat.isRunning) return;
  question.value = "";
  show(said(text));
  perform(text, () => send(text));
});

question.addEventListener("keydown", (event) => {
  // Enter that ends the input of Chinese characters is not meant for us.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  found("composer").requestSubmit();
});

found("stop").addEventListener("click", () => {
  found("stop").disabled = true;
  // What becomes of the run is the answer to the run.
  api.cancel(chat.session).catch(() => paint());
});

found("fresh").addEventListener("click", startOver);

startOver();
