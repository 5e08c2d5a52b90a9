// Field for the portfolio of the rows: an existing one, or a new one by name.
import { queryOptions, useQuery } from "@tanstack/react-query";
import { SelectField, TextField } from "@wattle/page";
import { listPortfolios } from "../api.ts";

/** The existing portfolios. */
export const PORTFOLIOS = queryOptions({ queryKey: ["portfolios"], queryFn: listPortfolios });

/** The chosen portfolio: an existing one by id, a new one by name, or none. */
export type Choice = number | string | undefined;

const NEW = "new";

export function isChosen(choice: Choice): boolean {
  return typeof choice === "string" ? choice.trim() !== "" : choice !== undefined;
}

interface Props {
  choice: Choice;
  onChange: (choice: Choice) => void;
}

export function PortfolioField({ choice, onChange }: Props) {
  const { data: portfolios = [], error } = useQuery(PORTFOLIOS);
  const options = [
    { value: "", name: "请选择组合" },
    ...portfolios.map(({ id, name }) => ({ value: String(id), name })),
    { value: NEW, name: "＋ 新建组合" },
  ];
  const choose = (value: string) => {
    if (value === NEW) onChange("");
    else onChange(value === "" ? undefined : Number(value));
  };
  return (
    <>
      <SelectField
        label="投资组合"
        value={typeof choice === "string" ? NEW : String(choice ?? "")}
        onChange={choose}
        options={options}
        error={error?.message}
        required
      />
      {typeof choice === "string" && (
        <TextField
          label="新组合名称"
          value={choice}
          onChange={onChange}
          placeholder="例如：长期持有"
          maxLength={100}
          required
        />
      )}
    </>
  );
}
