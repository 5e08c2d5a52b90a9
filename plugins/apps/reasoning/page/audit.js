// The audit panel: the rows of the trace endpoint. Rows never change, so only new ones are read.

const STEPS = {
  session_create: "会话", understanding: "理解", planning: "规划", discovery: "发现",
  locating: "定位", attributes: "属性", executing: "执行", llm: "模型",
  clarification: "澄清", completed: "完成", failed: "失败",
};

/** Width from which chat and panel stand side by side with room for both. */
const WIDE = matchMedia("(min-width: 1100px)");

class Audit {
  constructor() {
    this.panel = found("audit");
    this.list = found("events");
    found("toggle").addEventListener("click", () => this.show(this.panel.hidden, true));
    found("close").addEventListener("click", () => this.show(false, true));
    found("refresh").addEventListener("click", () => this.refresh());
    this.panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.show(false, true);
    });
    this.follow(null);
    this.show(WIDE.matches, false);
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  /** Opens or closes the panel; the focus goes along if the user did it. */
  show(isOpen, byUser) {
    this.panel.hidden = !isOpen;
    found("toggle").setAttribute("aria-expanded", String(isOpen));
    if (byUser) found(isOpen ? "close" : "toggle").focus();
    if (isOpen) this.refresh();
  }

  /** Shows another session. */
  follow(id) {
    Object.assign(this, { id, last: 0, errors: 0, methods: new Map(), reading: null });
    this.list.replaceChildren();
    this.say("");
  }

  /** Reads what is new. Two at once would show rows twice, so the second waits for the first. */
  refresh() {
    const id = this.id;
    if (!id) return Promise.resolve();
    const before = this.reading ?? Promise.resolve();
    this.reading = before.then(() => this.read(id)).catch((refused) => {
      if (id === this.id) this.say(`无法读取审计记录：${refused.message}`);
    });
    return this.reading;
  }

  async read(id) {
    for (let more = true; more; ) {
      const { events, next_after: next } = await api.trace(id, this.last);
      if (id !== this.id) return;
      this.list.append(...events.map((event) => this.row(event)));
      this.last = events.at(-1)?.seq ?? this.last;
      more = Boolean(next);
    }
    this.say("");
  }

  say(problem) {
    const note = found("audit-note");
    note.classList.toggle("bad", problem !== "");
    note.hidden = problem === "" && this.last > 0;
    note.textContent = problem || "会话开始后，这里按顺序列出每一步和每一次模型、服务调用。";
    const bad = this.errors ? `，${this.errors} 条错误` : "";
    found("audit-count").textContent = this.last ? `${this.last} 条${bad}` : "";
    found("refresh").disabled = !this.id;
  }

  row(event) {
    const payload = event.payload ?? {};
    const error = payload.error && [payload.error.code, payload.error.message].filter(Boolean);
    const summary = make("summary", "", make("span", "seq", String(event.seq)),
      make("span", "type", event.event_type),
      make("span", "step", STEPS[event.step] ?? event.step));
    const method = this.method(payload);
    if (method) summary.append(make("span", "method", method));
    if (error) summary.append(make("span", "error", error.join("：")));
    const item = make("li", error ? "event bad" : "event");
    Object.assign(item.dataset, { seq: event.seq, step: event.step });
    item.append(unfold(make("details", "", summary), () =>
      make("div", "payload",
        make("p", "", `${event.step} · ${new Date(event.created_at).toLocaleString("zh-CN")}`),
        make("pre", "", pretty(payload)))));
    this.errors += error ? 1 : 0;
    return item;
  }

  /** What was called. The answer of a model does not say for what it was asked. */
  method(payload) {
    const own = payload.method ?? payload.purpose;
    if (own && payload.call_id) this.methods.set(payload.call_id, own);
    const name = own ?? this.methods.get(payload.call_id) ?? "";
    return [name, Number.isFinite(payload.duration_ms) ? `${payload.duration_ms} ms` : ""]
      .filter(Boolean).join(" · ");
  }
}
