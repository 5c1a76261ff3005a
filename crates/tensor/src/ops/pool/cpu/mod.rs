//! The rows of one sequence in a task.

pub(super) mod plain;
