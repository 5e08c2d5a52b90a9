// The applications of this repository, so that the page says what they are without a server too.

export interface Known {
  name: string;
  title: string;
  /** What it does, and for whom. */
  about: string;
  /** What is worth a look. */
  watch: string;
  examples: readonly string[];
}

export const KNOWN: readonly Known[] = [
  {
    name: "asset",
    title: "资产录入",
    about: "一句话或一张截图变成交易或持仓记录：识别、补全代码和币种，由你核对后才写入数据库。",
    watch: "看流程逐个节点推进，缺少的字段标红；确认之前什么都不会保存。",
    examples: ["昨天买入腾讯 100 股 320", "持有贵州茅台 200 股，成本 1500"],
  },
  {
    name: "reasoning",
    title: "业务数据问答",
    about: "用日常语言查询业务数据：先在本体中找到对象，再决定怎么查，最后给出结果和总结。",
    watch: "问得不清楚时它会追问；审计面板列出每一步的依据。",
    examples: ["客户张伟的订单", "统计各区域的客户数量"],
  },
  {
    name: "expense",
    title: "记账助手",
    about: "说出花在哪里、花了多少，就记到飞书多维表格；旁边是当天和当月的账本。",
    watch: "日期由工具换算，模型不知道现在几点；缺少金额时它会问你。",
    examples: ["昨天打车花了20元", "今天早餐15元，午饭38元"],
  },
  {
    name: "travel",
    title: "旅行手册",
    about: "把一个旅行视频做成图文手册：读字幕、整理内容、查坐标、配图、排版。",
    watch: "每个工具一张卡片；内容可以编辑，手册可以预览和分享。",
    examples: ["https://www.youtube.com/watch?v=dQw4w9WgXcQ"],
  },
  {
    name: "nl2sql",
    title: "数据问答",
    about: "把问题变成只读的 SQL，执行后用表格和图说明结果。",
    watch: "看到生成的 SQL；写错时它读报错、自己修正。",
    examples: ["2024年每月的销售额", "销售额最高的5个商品"],
  },
];
