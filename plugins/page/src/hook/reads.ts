// Reads that may fail or overtake one another.
import { ApiError } from "../api/index.ts";

/** What was read, or `undefined` if the server refused or cannot be reached: the page reads again later. */
export async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/**
 * Wraps `read` so that what a page shows never goes back in time. An answer is `undefined` if an answer to a later call
 * has come before it, because that one knows more.
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
