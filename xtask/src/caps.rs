//! Caps: what the project may grow to. Whoever raises one says why in the comment of its line.

/// Documented public items of the crate `heedful`, as `public_items` counts them: a crate root that is read in ten minutes.
pub(crate) const PUBLIC_ITEMS: usize = 350;
