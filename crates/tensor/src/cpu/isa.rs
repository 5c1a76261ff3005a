//! The instruction set of this CPU, detected once.
//!
//! `HEEDFUL_ISA=amx|avx512|avx-vnni|avx2|neon|portable` selects a lower one, so that one machine can test every path.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// An instruction set with kernels, from the plainest to the richest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// Plain Rust, as compiled for the target's baseline.
    Portable = 1,
    /// ARM's 128-bit vectors with fused multiply-add. Matrix products and cached attention have kernels of their own;
    /// everything else is plain Rust, which the compiler vectorises with NEON as it does for `Portable` there, so both
    /// give the same bits.
    Neon = 2,
    /// 256-bit vectors with fused multiply-add.
    Avx2 = 3,
    /// AVX2 plus dot products of bytes in 256 bits, which int8 products use; everything else is as with
    /// `Avx2`, bit for bit.
    AvxVnni = 4,
    /// 512-bit vectors (F, BW, DQ, VL).
    Avx512 = 5,
    /// AVX-512 plus AMX tiles for bf16.
    Amx = 6,
}

/// Every instruction set, for tests that iterate over them; see [`Isa::is_available`].
pub const ALL: [Isa; 6] = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::AvxVnni, Isa::Avx512, Isa::Amx];

static CURRENT: AtomicU8 = AtomicU8::new(0);

/// The instruction set in use.
pub fn current() -> Isa {
    match CURRENT.load(Ordering::Relaxed) {
        1 => Isa::Portable,
        2 => Isa::Neon,
        3 => Isa::Avx2,
        4 => Isa::AvxVnni,
        5 => Isa::Avx512,
        6 => Isa::Amx,
        _ => {
            let isa = chosen();
            CURRENT.store(isa as u8, Ordering::Relaxed);
            isa
        }
    }
}

/// Uses `isa` from now on, in every thread. Weights are packed for one instruction set, so change it before a
/// model computes, not between its forward and its backward pass.
///
/// # Panics
/// If this machine does not support it.
pub fn select(isa: Isa) {
    assert!(isa.is_available(), "this machine does not support {isa}");
    CURRENT.store(isa as u8, Ordering::Relaxed);
}

/// Runs `work` with every instruction set of this machine, then restores the previous one. Calls are
/// serialised, but other work of the process uses the selected instruction set meanwhile: for tests in
/// processes of their own.
pub fn with_each(mut work: impl FnMut(Isa)) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let before = current();
    for isa in ALL.into_iter().filter(|isa| isa.is_available()) {
        select(isa);
        work(isa);
    }
    select(before);
}

impl Isa {
    /// Whether this machine supports it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => Isa::Avx2.is_available() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => Isa::Avx512.is_available() && super::gemm::amx_is_permitted(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }
}

fn chosen() -> Isa {
    let best = ALL.into_iter().rfind(|isa| isa.is_available()).expect("portable is always available");
    let Ok(name) = std::env::var("HEEDFUL_ISA") else { return best };
    match name.parse::<Isa>() {
        Ok(isa) if isa.is_available() => isa,
        Ok(isa) => {
            eprintln!("HEEDFUL_ISA={name}: this machine does not support {isa}; using {best}");
            best
        }
        Err(problem) => {
            eprintln!("HEEDFUL_ISA={name}: {problem}; using {best}");
            best
        }
    }
}

impl FromStr for Isa {
    type Err = String;

    fn from_str(name: &str) -> Result<Isa, String> {
        ALL.into_iter().find(|isa| isa.to_string() == name).ok_or_else(|| {
            "unknown instruction set; choose amx, avx512, avx-vnni, avx2, neon or portable".to_owned()
        })
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avx-vnni",
            Isa::Avx512 => "avx512",
            Isa::Amx => "amx",
        })
    }
}
