//! Whether there is a card to test on.

use heedful::tensor::cuda;

/// Without one nothing is tested and a line says why, unless one is required.
pub(crate) fn has_card() -> bool {
    match cuda::card() {
        Ok(_) => true,
        Err(reason) => {
            let is_required = std::env::var_os("HEEDFUL_REQUIRE_CUDA").is_some_and(|value| value == "1");
            assert!(!is_required, "HEEDFUL_REQUIRE_CUDA is set, but {reason}");
            eprintln!("not tested on a card: {reason}");
            false
        }
    }
}
