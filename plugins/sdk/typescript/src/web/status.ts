// Status codes of responses.

/** Status codes of responses. */
export const status = {
  /** Something was created. */
  CREATED: 201,
  /** The request is accepted, and its work is not complete. */
  ACCEPTED: 202,
  /** The request succeeded, and the response has no body. */
  NO_CONTENT: 204,
  /** The client already has the current version. */
  NOT_MODIFIED: 304,
  /** The resource has another URL, which the header `location` names. */
  PERMANENT_REDIRECT: 308,
  /** The request is invalid. */
  BAD_REQUEST: 400,
  /** The resource does not exist. */
  NOT_FOUND: 404,
  /** The request conflicts with the current state. */
  CONFLICT: 409,
  /** The resource does not exist any more. */
  GONE: 410,
  /** The client does not have the version that it wants to replace. */
  PRECONDITION_FAILED: 412,
  /** The body exceeds a limit. */
  PAYLOAD_TOO_LARGE: 413,
  /** The body is well-formed, and its content is invalid. */
  UNPROCESSABLE_ENTITY: 422,
  /** A defect of the app. */
  INTERNAL_SERVER_ERROR: 500,
  /** A service failed on which the app depends. */
  BAD_GATEWAY: 502,
} as const;
