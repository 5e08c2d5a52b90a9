// The texts of the page in each language.
import type { KnownName, Status } from "./apps.ts";

/** What the page says about an application of this repository. */
interface Known {
  title: string;
  /** What it does, and for whom. */
  about: string;
  /** What is worth a look. */
  watch: string;
}

const zh = {
  lang: "zh-CN",
  language: "语言",
  title: "Wattle 应用",
  about:
    "每个应用是一张由智能体节点组成的图，节点和工具都是 WebAssembly 组件，只能做获准的事。选一个示例试试。",
  studio: "在 Studio 中查看每次运行的每一步。",
  runs: "在 Studio 中查看运行",
  unread: "暂时读不到应用列表，下面的状态可能不是最新的。",
  retry: "重试",
  reading: "正在读取应用列表…",
  ready: (count: number) => `${count} 个应用可用`,
  apps: "应用",
  status: {
    ready: "可用",
    unbuilt: "页面未构建",
    bare: "没有页面",
    missing: "未加载",
    unknown: "状态未知",
  } satisfies Record<Status, string>,
  hints: {
    unbuilt: "运行 cargo xtask pages 构建页面（需要 Node.js 20.19 或更新版本）。",
    missing: "把应用放进 plugins 文件夹，它就会被加载。",
  } as Partial<Record<Status, string>>,
  examples: (title: string) => `${title}：试一试`,
  open: (title: string) => `用它打开 ${title}`,
  copy: "复制",
  copyExample: (example: string) => `复制：${example}`,
  copied: "已复制",
  notCopied: "浏览器不允许复制",
  known: {
    asset: {
      title: "资产录入",
      about: "一句话或一张截图变成交易或持仓记录：识别、补全代码和币种，由你核对后才写入数据库。",
      watch: "看流程逐个节点推进，缺少的字段标红；确认之前什么都不会保存。",
    },
    reasoning: {
      title: "业务数据问答",
      about: "用日常语言查询业务数据：先在本体中找到对象，再决定怎么查，最后给出结果和总结。",
      watch: "问得不清楚时它会追问；审计面板列出每一步的依据。",
    },
    expense: {
      title: "记账助手",
      about: "说出花在哪里、花了多少，就记到飞书多维表格；旁边是当天和当月的账本。",
      watch: "日期由工具换算，模型不知道现在几点；缺少金额时它会问你。",
    },
    travel: {
      title: "旅行手册",
      about: "把一个旅行视频做成图文手册：读字幕、整理内容、查坐标、配图、排版。",
      watch: "每个工具一张卡片；内容可以编辑，手册可以预览和分享。",
    },
    nl2sql: {
      title: "数据问答",
      about: "把问题变成只读的 SQL，执行后用表格和图说明结果。",
      watch: "看到生成的 SQL；写错时它读报错、自己修正。",
    },
  } satisfies Record<KnownName, Known>,
};

/** The texts of one language. */
export type Texts = typeof zh;

const en: Texts = {
  lang: "en",
  language: "Language",
  title: "Wattle applications",
  about:
    "Each application is a graph of agent nodes. Nodes and tools are WebAssembly components, which can do only what they are granted. Try one of the examples. The applications themselves are in Chinese.",
  studio: "The studio shows each step of each run.",
  runs: "Runs in the studio",
  unread:
    "The list of applications cannot be read at the moment. The states below may be outdated.",
  retry: "Retry",
  reading: "Reading the list of applications…",
  ready: (count) =>
    count === 1 ? "1 application is available" : `${count} applications are available`,
  apps: "Applications",
  status: {
    ready: "available",
    unbuilt: "page not built",
    bare: "no page",
    missing: "not loaded",
    unknown: "state unknown",
  },
  hints: {
    unbuilt: "Run cargo xtask pages to build the page (needs Node.js 20.19 or newer).",
    missing: "Put the application into the plugins folder, and it is loaded.",
  },
  examples: (title) => `${title}: try it`,
  open: (title) => `Open ${title} with this example`,
  copy: "Copy",
  copyExample: (example) => `Copy: ${example}`,
  copied: "Copied",
  notCopied: "The browser does not permit copying",
  known: {
    asset: {
      title: "Asset entry",
      about:
        "Turns a sentence or a screenshot into records of trades or holdings. It recognizes them and completes tickers and currencies; you check them before they are written to the database.",
      watch:
        "Watch the graph proceed node by node, with missing fields in red. Nothing is stored until you confirm it.",
    },
    reasoning: {
      title: "Business data questions",
      about:
        "Answers questions about business data in everyday language. It finds the objects in an ontology, decides how to query them, and returns a result with a summary.",
      watch: "It asks when a question is unclear. The audit panel lists the basis of each step.",
    },
    expense: {
      title: "Expense assistant",
      about:
        "Say what you spent and on what, and it is booked in a Feishu table. The bookings of the day and the month are next to the conversation.",
      watch:
        "A tool resolves dates, since the model does not know the time. It asks for a missing amount.",
    },
    travel: {
      title: "Travel guide",
      about:
        "Turns a travel video into an illustrated guide. It reads the subtitles, arranges the content, looks up coordinates, adds pictures and lays out the page.",
      watch:
        "Each tool has a card. The content can be edited, and the guide can be previewed and shared.",
    },
    nl2sql: {
      title: "Data questions",
      about:
        "Turns a question into read-only SQL, executes it, and explains the result with a table and a plot.",
      watch: "You see the SQL. If it is wrong, the model reads the error and corrects it.",
    },
  },
};

export const TEXTS = { zh, en };
