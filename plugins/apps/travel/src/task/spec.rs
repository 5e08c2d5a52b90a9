//! The tasks, and the limits of their models.

/// Limits of the models of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// Name of the task, of its route and of its response schema.
    pub(crate) name: &'static str,
    /// Maximum length of a completion.
    pub(crate) max_output_tokens: u32,
    /// Timeout of one attempt.
    pub(crate) timeout_ms: u32,
    /// Retries of each model.
    pub(crate) retries: u32,
}

/// Makes blocks from a video.
pub(crate) const JSON_COMPILATION: Task = Task {
    name: "json_compilation_strict",
    max_output_tokens: 8_192,
    timeout_ms: 60_000,
    retries: 2,
};

/// Makes queries for the geocoder from spots.
pub(crate) const SPOT_QUERIES: Task = Task {
    name: "spot_query_normalization",
    max_output_tokens: 4_096,
    timeout_ms: 30_000,
    retries: 2,
};

/// Makes queries and prompts for images from blocks.
pub(crate) const IMAGE_PLAN: Task = Task {
    name: "handbook_image_query_planning",
    max_output_tokens: 4_096,
    timeout_ms: 35_000,
    retries: 2,
};

/// Makes a page from blocks and images.
pub(crate) const HANDBOOK_HTML: Task = Task {
    name: "handbook_html_generation",
    max_output_tokens: 16_384,
    timeout_ms: 75_000,
    retries: 1,
};
