// Queries of a page.
import { useQuery } from "@tanstack/react-query";
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { ApiError } from "../src/api/index.ts";
import { lost, reached } from "../src/connection/connection.tsx";
import { Queries } from "../src/query/query.tsx";

afterEach(cleanup);

test("a query that failed without a connection is read again when it is restored", async () => {
  const read = vi.fn<() => Promise<string>>(async () => "here");
  read.mockRejectedValueOnce(new ApiError("network", "away"));
  function Value() {
    const { data, error } = useQuery({ queryKey: ["value"], queryFn: read });
    return <p>{data ?? error?.message}</p>;
  }
  render(
    <Queries>
      <Value />
    </Queries>,
  );
  await screen.findByText("away");
  act(lost);
  expect(read).toHaveBeenCalledTimes(1);
  act(reached);
  await screen.findByText("here");
  expect(read).toHaveBeenCalledTimes(2);
});
