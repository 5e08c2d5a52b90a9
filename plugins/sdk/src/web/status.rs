//! Status codes of responses.

/// Something was created.
pub const CREATED: u16 = 201;

/// The request is accepted, and its work is not complete.
pub const ACCEPTED: u16 = 202;

/// The request succeeded, and the response has no body.
pub const NO_CONTENT: u16 = 204;

/// The client already has the current version.
pub const NOT_MODIFIED: u16 = 304;

/// The resource has another URL, which the header `location` names.
pub const PERMANENT_REDIRECT: u16 = 308;

/// The request is invalid.
pub const BAD_REQUEST: u16 = 400;

/// The resource does not exist.
pub const NOT_FOUND: u16 = 404;

/// The request conflicts with the current state.
pub const CONFLICT: u16 = 409;

/// The resource does not exist any more.
pub const GONE: u16 = 410;

/// The client does not have the version that it wants to replace.
pub const PRECONDITION_FAILED: u16 = 412;

/// The body exceeds a limit.
pub const PAYLOAD_TOO_LARGE: u16 = 413;

/// The body is well-formed, and its content is invalid.
pub const UNPROCESSABLE_ENTITY: u16 = 422;

/// A defect of the app.
pub const INTERNAL_SERVER_ERROR: u16 = 500;

/// A service failed on which the app depends.
pub const BAD_GATEWAY: u16 = 502;
