//! One body of plain Rust, compiled for each vector width and dispatched at run time.
//!
//! The compiler vectorises a loop for the target features of its function. [`kernel!`] compiles the same body
//! as an AVX-512, an AVX2 and a baseline function. Bodies have one fixed order of every sum ([`fold`]) and
//! never use fused multiply-add, so the result has the same bits on all of them.

/// Declares a function whose body is compiled for several instruction sets. Helpers that it calls must be
/// `#[inline(always)]`, or they are compiled for the baseline only.
macro_rules! kernel {
    ($(#[$meta:meta])* $vis:vis fn $name:ident <$f:ident : Fn($($fin:ty),*) -> $fout:ty> ( $($arg:ident : $ty:ty),* $(,)? ) $(-> $ret:ty)? $body:block) => {
        kernel! { @versions [$(#[$meta])*] [$vis] $name [<$f: Fn($($fin),*) -> $fout>] [] [$($arg: $ty),*] [$($arg),*] [$(-> $ret)?] $body }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident <$t:ident : $bound:ident> ( $($arg:ident : $ty:ty),* $(,)? ) $(-> $ret:ty)? $body:block) => {
        kernel! { @versions [$(#[$meta])*] [$vis] $name [<$t: $bound>] [::<$t>] [$($arg: $ty),*] [$($arg),*] [$(-> $ret)?] $body }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$(const $c:ident : $cty:ty),+>)? ( $($arg:ident : $ty:ty),* $(,)? ) $(-> $ret:ty)? $body:block) => {
        kernel! { @versions [$(#[$meta])*] [$vis] $name [$(<$(const $c: $cty),+>)?] [$(::<$($c),+>)?] [$($arg: $ty),*] [$($arg),*] [$(-> $ret)?] $body }
    };
    (@versions [$($meta:tt)*] [$vis:vis] $name:ident [$($generics:tt)*] [$($turbofish:tt)*] [$($params:tt)*] [$($args:tt)*] [$($ret:tt)*] $body:block) => {
        $($meta)*
        #[allow(clippy::too_many_arguments, clippy::needless_range_loop, reason = "kernels use indices")]
        $vis fn $name $($generics)* ($($params)*) $($ret)* {
            #[inline(always)]
            fn body $($generics)* ($($params)*) $($ret)* $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            fn avx512 $($generics)* ($($params)*) $($ret)* {
                body $($turbofish)* ($($args)*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $($generics)* ($($params)*) $($ret)* {
                body $($turbofish)* ($($args)*)
            }

            #[cfg(target_arch = "x86_64")]
            match $crate::cpu::isa::current() {
                $crate::cpu::isa::Isa::Amx | $crate::cpu::isa::Isa::Avx512 => {
                    // SAFETY: `isa::current()` is an instruction set of this machine.
                    return unsafe { avx512 $($turbofish)* ($($args)*) };
                }
                $crate::cpu::isa::Isa::AvxVnni | $crate::cpu::isa::Isa::Avx2 => {
                    // SAFETY: as above.
                    return unsafe { avx2 $($turbofish)* ($($args)*) };
                }
                _ => {}
            }
            body $($turbofish)* ($($args)*)
        }
    };
}

/// `by_type!(dtype, T => work)`: runs the work with `T` as the element type.
macro_rules! by_type {
    ($dtype:expr, $t:ident => $work:expr) => {{
        #[allow(unused_imports, reason = "not all work uses the elements of arrays")]
        use $crate::cpu::number::Element as _;
        match $dtype {
            $crate::DType::F32 => {
                type $t = f32;
                $work
            }
            $crate::DType::Bf16 => {
                type $t = half::bf16;
                $work
            }
        }
    }};
}

/// Sixteen accumulators: one AVX-512 register, two AVX2 ones, four NEON ones.
pub(crate) type Lanes = [f32; LANES];
/// Their number.
pub(crate) const LANES: usize = 16;

/// Reduces all lanes to one value, halves first: the same order for every vector width.
#[inline(always)]
pub(crate) fn fold(mut lanes: Lanes, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = join(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}
