//! The systems that programs and wheels are built for.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The minimum glibc of released programs and wheels: that of CentOS 7 and of `manylinux_2_17`.
pub(crate) const GLIBC: &str = "2.17";

/// The targets of programs and wheels on each system. The first is used in tests.
pub(super) const TARGETS: [&str; 2] = if cfg!(target_os = "macos") {
    ["aarch64-apple-darwin", "x86_64-apple-darwin"]
} else if cfg!(windows) {
    ["x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"]
} else {
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
};

/// The target of this machine.
pub(crate) fn host() -> String {
    let system = if cfg!(target_os = "macos") {
        "apple-darwin"
    } else if cfg!(windows) {
        "pc-windows-msvc"
    } else {
        "unknown-linux-gnu"
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// Fails if a program or a library needs a newer glibc than [`GLIBC`].
pub(super) fn check_glibc(file: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let newest = newest_glibc(&bytes);
    let name = file.display();
    let newest =
        newest.with_context(|| format!("{name} names no symbols of glibc: is it a program for Linux?"))?;
    let allowed = numbers(GLIBC);
    ensure!(
        newest <= allowed,
        "{name} needs glibc {}, and is to run with {GLIBC}: find what it calls with `objdump -T`",
        newest.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
    );
    println!("{name}: glibc {} or newer", newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."));
    Ok(())
}

/// The newest required symbol version. The file contains the version names as plain text.
fn newest_glibc(bytes: &[u8]) -> Option<Vec<u32>> {
    const NAME: &[u8] = b"GLIBC_";
    let versions = (0..bytes.len().saturating_sub(NAME.len())).filter(|&at| bytes[at..].starts_with(NAME));
    let version = |at: usize| {
        let rest = &bytes[at + NAME.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        Some(numbers(std::str::from_utf8(&rest[..end]).ok()?))
    };
    versions.filter_map(version).filter(|version| !version.is_empty()).max()
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let file = b"x\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.3.4\0GLIBC_PRIVATE\0GCC_3.0\0";
        assert_eq!(newest_glibc(file), Some(vec![2, 17]));
        assert_eq!(newest_glibc(b"\0GLIBC_2.34\0GLIBC_2.4\0"), Some(vec![2, 34]));
        assert_eq!(newest_glibc(b"no program"), None);
        assert!(numbers("2.3.4") < numbers(GLIBC) && numbers("2.18") > numbers(GLIBC));
    }
}
