// Reads of the same thing that may overtake one another.

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
