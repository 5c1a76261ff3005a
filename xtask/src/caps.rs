//! Caps: what the project may grow to. Whoever raises one says why in the comment of its line.

/// Documented public items of the crate `heedful`, as `public_items` counts them: a crate root that is read in ten minutes.
pub(crate) const PUBLIC_ITEMS: usize = 350;

/// Bytes of the program that `cargo build --release` leaves on Linux. Whoever raises it says why here. The aim was 14 MB:
/// bench/NOTES.md says what was tried and why it stays where it is.
pub(crate) const PROGRAM_BYTES: u64 = 20_800_000;
/// CPU seconds of the first `cargo build --release`, dependencies too. Whoever raises it says why here.
pub(crate) const BUILD_CPU_SECONDS: f64 = 300.0;
/// Commands that `heedful --help` lists, `help` too. Whoever raises it says why here: 24 with `completions`.
pub(crate) const TOP_LEVEL_COMMANDS: usize = 24;
