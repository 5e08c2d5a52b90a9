// Options of queries whose results may be large.

/** The result is kept for one minute after no view shows it any more. */
export const LARGE = { gcTime: 60_000 };

/** Likewise, for a result that does not change. */
export const LARGE_AND_FIXED = { ...LARGE, staleTime: Number.POSITIVE_INFINITY };
