//! Caps: limits of the project's size. A change that raises one gives the reason in the cap's comment.

/// Documented public items of the crate `heedful`, as counted by `public_items`, so that the API can be read
/// in ten minutes.
pub(crate) const PUBLIC_ITEMS: usize = 350;

/// Bytes of the release program on Linux. The aim was 14 MB: bench/NOTES.md lists what was tried and why it
/// is larger. Lens, attribution, patching, functions of heads and the neuron view took 0.5 MB.
pub(crate) const PROGRAM_BYTES: u64 = 21_300_000;
/// Bytes of the folder of `cargo xtask web`, which a browser downloads: the compressed module, scripts, both models.
pub(crate) const WEB_BYTES: u64 = 4_000_000;
/// CPU seconds of the first `cargo build --release`, including dependencies.
pub(crate) const BUILD_CPU_SECONDS: f64 = 300.0;
/// Commands listed by `heedful --help`, including `help`: 24 with `completions`.
pub(crate) const TOP_LEVEL_COMMANDS: usize = 24;
