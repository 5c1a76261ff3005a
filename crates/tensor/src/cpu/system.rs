//! The two system calls that this library makes directly, both to Linux. On other systems they do nothing.

use std::ptr::NonNull;

/// Requests huge pages for a block that was not touched yet. A kernel without them returns an error, which is
/// ignored.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn advise_huge_pages(start: NonNull<u8>, bytes: usize) {
    const MADVISE: usize = if cfg!(target_arch = "x86_64") { 28 } else { 233 };
    const MADV_HUGEPAGE: usize = 14;
    // SAFETY: advice changes no contents.
    unsafe { call(MADVISE, [start.as_ptr() as usize, bytes, MADV_HUGEPAGE]) };
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn advise_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

/// Requests permission for this process to use the AMX tile registers.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) fn request_amx() -> bool {
    const ARCH_PRCTL: usize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    // SAFETY: it changes nothing but this process's permission.
    unsafe { call(ARCH_PRCTL, [ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA, 0]) == 0 }
}

#[cfg(all(not(target_os = "linux"), target_arch = "x86_64"))]
pub(super) fn request_amx() -> bool {
    false
}

/// A system call; negative results are errors.
///
/// # Safety
/// As the call demands.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
unsafe fn call(number: usize, arguments: [usize; 3]) -> isize {
    let result: isize;
    // SAFETY: the caller's promise; the kernel clobbers rcx and r11.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result
}

/// A system call; negative results are errors.
///
/// # Safety
/// As the call demands.
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
unsafe fn call(number: usize, arguments: [usize; 3]) -> isize {
    let result: isize;
    // SAFETY: the caller's promise; the kernel clobbers nothing else.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] as isize => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            options(nostack),
        );
    }
    result
}
