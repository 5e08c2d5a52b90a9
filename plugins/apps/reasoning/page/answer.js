// What stands in the chat.

/** Characters from which a cell is broken into lines. */
const LONG_CELL = 40;

const MODES = { query: "明细查询", "group-analysis": "分组统计" };

const welcome = () =>
  make("section", "welcome", make("h2", "", "想了解什么业务数据？"),
    make("p", "", "用一句话提问。信息不足时会先向您确认，再给出结论和明细。"));

const said = (text) => make("div", "said", make("p", "", text));

const working = () =>
  make("div", "card working", make("span", "spinner"), make("span", "", "正在分析，请稍候…"));

const asking = (clarification) =>
  make("section", "card asking", make("h3", "", "需要补充信息"),
    make("p", "", clarification.question));

const notice = (text) => make("section", "card", make("p", "", text));

function failed(refused, retry) {
  const card = make("section", "card failed", make("h3", "", "没有得到结果"),
    make("p", "", refused.message), make("p", "code", `错误代码 ${refused.code ?? "page"}`));
  card.setAttribute("role", "alert");
  if (retry) card.append(button("重试", retry));
  return card;
}

function completed(result) {
  const execution = result?.data_execution ?? {};
  const items = Array.isArray(execution.items) ? execution.items : [];
  const card = make("section", "card", make("p", "summary", result?.summary ?? ""));
  card.append(facts(result), ...(items.length ? [rows(items, names(result))] : []));
  card.append(make("p", "total", count(items.length, execution.total)));
  if (execution.plan) {
    const plan = make("details", "more", make("summary", "", "查询计划"));
    card.append(unfold(plan, () => make("pre", "", pretty(execution.plan))));
  }
  return card;
}

function count(shown, total) {
  if (!shown) return "没有符合条件的数据。";
  const all = Number.isFinite(total) && total > shown ? `共 ${total} 行，` : "";
  return `${all}显示 ${shown} 行`;
}

/** Where the data comes from. */
function facts(result) {
  const route = result?.llm_route;
  const told = [
    ["业务对象", result?.data_execution?.ontology?.name ?? result?.selected_ontology?.name],
    ["执行方式", MODES[result?.data_execution_mode] ?? result?.data_execution_mode],
    ["使用能力", result?.selected_task?.name],
    ["模型", route && `${route.provider} / ${route.model}`],
  ];
  const list = make("dl", "facts");
  for (const [name, value] of told) {
    if (value) list.append(make("div", "", make("dt", "", name), make("dd", "", String(value))));
  }
  return list;
}

/** What attributes are called, by their codes. */
function names(result) {
  const attributes = result?.candidate_attributes ?? [];
  return new Map(attributes.map(({ code, name }) => [code, name]));
}

function rows(items, labels) {
  const columns = [...new Set(items.flatMap((item) => Object.keys(Object(item))))];
  const isNumber = new Set(
    columns.filter((name) => items.every((item) => typeof item[name] === "number")),
  );
  const head = make("tr", "", ...columns.map((name) => {
    const cell = make("th", isNumber.has(name) ? "number" : "", labels.get(name) ?? name);
    cell.scope = "col";
    cell.title = name;
    return cell;
  }));
  const body = items.map((item) => make("tr", "", ...columns.map((name) => {
    const text = shown(item[name]);
    const classes = isNumber.has(name) ? "number" : text.length > LONG_CELL ? "long" : "";
    return make("td", classes, text);
  })));
  const table = make("table", "", make("thead", "", head), make("tbody", "", ...body));
  const frame = make("div", "rows", table);
  // It may scroll, and then the keyboard must be able to.
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "结果明细");
  return frame;
}

function shown(value) {
  if (value === null || value === undefined || value === "") return "—";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
