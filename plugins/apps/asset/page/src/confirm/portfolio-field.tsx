// Field for the portfolio of the rows: an existing one, or a new one by name.
import { SelectField, TextField } from "@wattle/page";
import type { Portfolio } from "../api.ts";

/** The chosen portfolio: none, an existing one by id, or a new one by name. */
export type Choice =
  | { kind: "none" }
  | { kind: "known"; id: number }
  | { kind: "new"; name: string };

const NEW = "new";

export function isChosen(choice: Choice): boolean {
  return choice.kind === "known" || (choice.kind === "new" && choice.name.trim() !== "");
}

interface Props {
  portfolios: readonly Portfolio[];
  choice: Choice;
  onChange: (choice: Choice) => void;
}

export function PortfolioField({ portfolios, choice, onChange }: Props) {
  const value = choice.kind === "known" ? String(choice.id) : choice.kind === "new" ? NEW : "";
  const options = [
    { value: "", name: "请选择组合" },
    ...portfolios.map(({ id, name }) => ({ value: String(id), name })),
    { value: NEW, name: "＋ 新建组合" },
  ];
  const choose = (chosen: string) => {
    if (chosen === "") onChange({ kind: "none" });
    else if (chosen === NEW) onChange({ kind: "new", name: "" });
    else onChange({ kind: "known", id: Number(chosen) });
  };
  return (
    <>
      <SelectField label="投资组合" value={value} onChange={choose} options={options} required />
      {choice.kind === "new" && (
        <TextField
          label="新组合名称"
          value={choice.name}
          onChange={(name) => onChange({ kind: "new", name })}
          placeholder="例如：长期持有"
          maxLength={100}
          required
        />
      )}
    </>
  );
}
