// Reads that may fail or overtake each other.
import { ApiError } from "../api/index.ts";

/**
 * Returns the value, or `undefined` if the server refused or is not reachable: the page reads again
 * later.
 */
export async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/**
 * Wraps `read` so that a page never shows older data after newer data. The result is `undefined` if
 * the result of a later call has arrived before.
 */
export function inOrder<A extends unknown[], T>(
  read: (...args: A) => Promise<T | undefined>,
): (...args: A) => Promise<T | undefined> {
  let begun = 0;
  let newest = 0;
  return async (...args) => {
    begun += 1;
    const number = begun;
    const answer = await read(...args);
    if (answer === undefined || number < newest) return undefined;
    newest = number;
    return answer;
  };
}
