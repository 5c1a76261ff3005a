//! Which instructions this CPU has, found once at start.
//!
//! `HEEDFUL_ISA=amx|avx512|avx2|neon|portable` lowers the choice, so that one machine can test every path.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// An instruction set that the kernels know, from the plainest to the richest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// Whatever the compiler makes of plain Rust.
    Portable = 1,
    /// ARM's 128-bit vectors, with fused multiply-add. Products have kernels of their own; for all else the compiler makes NEON
    /// of plain Rust, as it does for `Portable` there, so both give the same bits.
    Neon = 2,
    /// 256-bit vectors with fused multiply-add.
    Avx2 = 3,
    /// 512-bit vectors (F, BW, DQ, VL).
    Avx512 = 4,
    /// AVX-512 plus matrix tiles for bf16.
    Amx = 5,
}

/// Every instruction set, for tests that walk over them; see [`Isa::is_available`].
pub const ALL: [Isa; 5] = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512, Isa::Amx];

static CURRENT: AtomicU8 = AtomicU8::new(0);

/// The instruction set in use.
pub fn current() -> Isa {
    match CURRENT.load(Ordering::Relaxed) {
        1 => Isa::Portable,
        2 => Isa::Neon,
        3 => Isa::Avx2,
        4 => Isa::Avx512,
        5 => Isa::Amx,
        _ => {
            let isa = chosen();
            CURRENT.store(isa as u8, Ordering::Relaxed);
            isa
        }
    }
}

/// Uses `isa` from now on, in every thread. Packed weights are packed for one instruction set, so change it before
/// a model computes, not between its forward and its backward.
///
/// # Panics
/// If this machine does not have it.
pub fn select(isa: Isa) {
    assert!(isa.is_available(), "this machine has no {isa}");
    CURRENT.store(isa as u8, Ordering::Relaxed);
}

/// Does `work` with every instruction set of this machine, and returns to the one before. Calls take turns, but what else
/// computes in the process meanwhile does so with another instruction set: for tests in processes of their own.
pub fn with_each(mut work: impl FnMut(Isa)) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = current();
    for isa in ALL.into_iter().filter(|isa| isa.is_available()) {
        select(isa);
        work(isa);
    }
    select(before);
}

impl Isa {
    /// True when this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
            Isa::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
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
            eprintln!("HEEDFUL_ISA={name}: this machine has no {isa}; using {best}");
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
        ALL.into_iter()
            .find(|isa| isa.to_string() == name)
            .ok_or_else(|| "no such instruction set; known are amx, avx512, avx2, neon, portable".to_owned())
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Portable => "portable",
            Isa::Neon => "neon",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Amx => "amx",
        })
    }
}
