//! Every GPU kernel compiles without register spills for the oldest and the newest architecture, and kernels
//! launched with programmatic dependent launch wait for the kernel before them. Needs NVRTC, a CUDA library,
//! but no GPU.

use heedful_tensor::cuda;

#[test]
fn every_kernel_compiles_without_spills() {
    for architecture in ["sm_80", "sm_90a"] {
        let modules = match cuda::compile_for(architecture) {
            Ok(modules) => modules,
            Err(reason) => {
                let is_required = std::env::var_os("HEEDFUL_REQUIRE_NVRTC").is_some_and(|value| value == "1");
                assert!(!is_required, "HEEDFUL_REQUIRE_NVRTC is set, but {reason}");
                eprintln!("skipped, kernels cannot be compiled: {reason}");
                return;
            }
        };
        for cuda::KernelReport { name, log, missing_wait } in modules {
            let log = log.unwrap_or_else(|log| panic!("{architecture}: {log}"));
            let spills = log.lines().filter(|line| {
                line.contains("spill") && !line.contains("0 bytes spill stores, 0 bytes spill loads")
            });
            let spills: Vec<&str> = spills.collect();
            assert!(spills.is_empty(), "{name} for {architecture} spills:\n{log}");
            assert!(
                missing_wait.is_empty(),
                "{name}: {missing_wait:?} do not wait for the kernel before them"
            );
            assert!(log.contains("registers"), "{name} for {architecture} has no register report:\n{log}");
        }
    }
}
