//! Rules for single files: take a path and its text, return complaints.
//!
//! Forbidden words are built with `concat!`, so that this file passes its own rules.

const LONGEST_SOURCE: usize = 400;
const LONGEST_ARCHITECTURE: usize = 200;

const UNFINISHED: [&str; 3] = [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("db", "g!")];
const UNSAFE: &str = concat!("un", "safe");
const CPU_MODULE: &str = concat!("crate::", "cpu");
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/t", "mp/"), concat!("/Use", "rs/")];

/// Where unsafe code is allowed: the computing crate, and the functions that JavaScript calls by name.
const UNSAFE_HOMES: [&str; 2] = ["crates/tensor/", "crates/web/src/exports.rs"];

/// Modules that may name operating systems: the general one, system calls with unsafe code, and the loading
/// of MPI, which some systems lack.
const SYSTEM_MODULES: [&str; 3] =
    ["crates/heedful/src/system/", "crates/tensor/src/cpu/system.rs", "crates/tensor/src/collective/mpi/"];
/// Crates and attributes that are specific to a system.
const SYSTEM_WORDS: [&str; 10] = [
    "unix",
    "cfg(windows)",
    "os::windows",
    "os::fd",
    "target_os",
    "target_family",
    "libc",
    "rlimit",
    "signal_hook",
    "tokio::signal",
];
const SYSTEM_FOLDERS: [&str; 2] = ["\"/proc/", "\"/sys/"];

pub(super) fn check(path: &str, text: &str, complaints: &mut Vec<String>) {
    let rust = path.ends_with(".rs");
    let is_operation = is_operation(path);
    let is_portable = is_portable(path);
    let tests = if rust { lines_before_tests(text) } else { 0 };
    length(path, text, complaints);
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{path}: does not end in a newline"));
    }
    for (index, line) in text.split('\n').enumerate() {
        let mut complain = |what: &str| complaints.push(format!("{path}:{}: {what}", index + 1));
        if line.ends_with([' ', '\t', '\r']) {
            complain("white space at the end of the line");
        }
        if MACHINE_PATHS.iter().any(|folder| names_folder(line, folder)) {
            complain("a path that exists on one machine only");
        }
        if !rust {
            continue;
        }
        let code = line.split("//").next().unwrap_or(line);
        if let Some(word) = UNFINISHED.iter().find(|word| has_word(code, word)) {
            complain(&format!("`{word}` left behind"));
        }
        if is_operation && index < tests && code.contains(CPU_MODULE) {
            complain(
                "an operation matches on the device and calls its own `cpu` module, which alone uses the machinery",
            );
        }
        if is_portable && index < tests && names_system(code) {
            complain("system-specific code belongs in `heedful::system`");
        }
        if opens_unsafe_code(code) && !UNSAFE_HOMES.iter().any(|home| path.starts_with(home)) {
            complain("only crates/tensor and crates/web/src/exports.rs may contain unsafe code");
        }
    }
}

/// Whether a file defines the formula, shapes and tape node of an operation for all devices: a file in the
/// operations' folders outside of their `cpu` modules, which contain the kernels of one device.
fn is_operation(path: &str) -> bool {
    let Some(inside) = path.strip_prefix("crates/tensor/src/ops/") else { return false };
    let mut parts = inside.split('/');
    !parts.any(|part| part == "cpu" || part == "cpu.rs" || part == "tests")
}

/// Whether a file must be independent of the operating system. Tests may use system-specific features.
fn is_portable(path: &str) -> bool {
    let is_ours = (path.starts_with("crates/") && path.contains("/src/")) || path.starts_with("fuzz/src/");
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    is_ours && !is_test && !SYSTEM_MODULES.iter().any(|module| path.starts_with(module))
}

fn names_system(code: &str) -> bool {
    SYSTEM_WORDS.iter().any(|word| has_word(code, word))
        || SYSTEM_FOLDERS.iter().any(|folder| code.contains(folder))
}

fn length(path: &str, text: &str, complaints: &mut Vec<String>) {
    let (lines, limit) = if path == "ARCHITECTURE.md" {
        (text.lines().count(), LONGEST_ARCHITECTURE)
    } else if path.ends_with(".rs") {
        (lines_before_tests(text), LONGEST_SOURCE)
    } else if path.ends_with(".py") || path.ends_with(".cu") {
        (text.lines().count(), LONGEST_SOURCE)
    } else {
        return;
    };
    if lines > limit {
        complaints.push(format!("{path}: {lines} lines, over {limit}: look for the seam"));
    }
}

/// Number of lines above the test module at the end, whose length is not limited.
pub(super) fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).rposition(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    tests.unwrap_or(lines.len())
}

/// Whether `code` contains `word` as a whole word: `unsafe_code` and `my_dbg!` are different words.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(start, _)| {
        let before = code[..start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        let joins = |neighbour: Option<char>| neighbour.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !joins(before) && (word.ends_with('!') || !joins(after))
    })
}

/// Whether the keyword is used as code, not in a message.
fn opens_unsafe_code(code: &str) -> bool {
    let follows = ["{", "(", "fn ", "impl ", "impl<", "trait ", "extern "];
    code.match_indices(UNSAFE).any(|(start, word)| {
        let after = code[start + word.len()..].trim_start();
        has_word(&code[start..], UNSAFE) && follows.iter().any(|next| after.starts_with(next))
    })
}

/// Whether the line contains `folder` at the start of an absolute path, not inside a longer path or a URL.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/{}~".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        check(path, text, &mut complaints);
        complaints
    }

    #[test]
    fn a_clean_file_passes() {
        assert!(complaints("crates/heedful/src/lib.rs", "#![forbid(unsafe_code)]\nfn f() {}\n").is_empty());
        assert!(complaints("empty.md", "").is_empty());
    }

    #[test]
    fn unsafe_code_has_one_home() {
        let text = format!("{UNSAFE} {{ f() }}\n");
        assert!(complaints("crates/tensor/src/cpu/simd.rs", &text).is_empty());
        assert_eq!(complaints("crates/heedful/src/lib.rs", &text).len(), 1);
        assert!(complaints("crates/heedful/src/lib.rs", &format!("// {UNSAFE} elsewhere\n")).is_empty());
    }

    #[test]
    fn operations_leave_the_machinery_to_their_cpu_modules() {
        let text = format!("use {CPU_MODULE}::threads::parallel;\n");
        for path in ["norm/mod.rs", "elementwise/shape.rs", "score.rs"] {
            assert_eq!(complaints(&format!("crates/tensor/src/ops/{path}"), &text).len(), 1, "{path}");
        }
        for path in ["ops/norm/cpu.rs", "ops/norm/cpu/rows.rs", "ops/attention/tests/mod.rs", "array.rs"] {
            assert!(complaints(&format!("crates/tensor/src/{path}"), &text).is_empty(), "{path}");
        }
        let tested = format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n    {text}}}\n");
        assert!(complaints("crates/tensor/src/ops/norm/mod.rs", &tested).is_empty());
    }

    #[test]
    fn systems_are_named_in_one_place() {
        for code in [
            "#[cfg(unix)]",
            "#[cfg(not(unix))]",
            "use std::os::unix::fs::MetadataExt;",
            "#[cfg(target_os = \"linux\")]",
            "use tokio::signal::ctrl_c;",
            "let status = read(\"/proc/self/status\");",
        ] {
            let text = format!("{code}\n");
            for path in ["crates/cli/src/main.rs", "crates/tensor/src/cpu/isa.rs", "fuzz/src/worker.rs"] {
                assert_eq!(complaints(path, &text).len(), 1, "{path}: {code}");
            }
            for path in
                SYSTEM_MODULES.into_iter().chain(["crates/cli/tests/commands/demo.rs", "xtask/src/test.rs"])
            {
                let path = if path.ends_with('/') { format!("{path}unix.rs") } else { path.to_owned() };
                assert!(complaints(&path, &text).is_empty(), "{path}: {code}");
            }
            let tested = format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n    {text}}}\n");
            assert!(complaints("crates/cli/src/output.rs", &tested).is_empty(), "{code}");
        }
        let other = "let pairs = lines.windows(2); let unixes = UNIX_EPOCH; // unix\n";
        assert!(complaints("crates/cli/src/main.rs", other).is_empty());
    }

    #[test]
    fn unfinished_code_is_found() {
        for word in UNFINISHED {
            assert_eq!(complaints("src/lib.rs", &format!("    {word}(x);\n")).len(), 1, "{word}");
        }
    }

    #[test]
    fn length_stops_at_the_tests() {
        let long = "fn f() {}\n".repeat(LONGEST_SOURCE);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// case\n".repeat(300));
        assert!(complaints("src/lib.rs", &format!("{long}{tests}")).is_empty());
        assert_eq!(complaints("src/lib.rs", &format!("{long}fn g() {{}}\n{tests}")).len(), 1);
    }

    #[test]
    fn architecture_is_short() {
        assert!(complaints("ARCHITECTURE.md", &"line\n".repeat(LONGEST_ARCHITECTURE)).is_empty());
        assert_eq!(complaints("ARCHITECTURE.md", &"line\n".repeat(LONGEST_ARCHITECTURE + 1)).len(), 1);
    }

    #[test]
    fn machine_paths_white_space_and_last_lines() {
        for folder in MACHINE_PATHS {
            assert_eq!(complaints("notes.md", &format!("see {folder}x\n")).len(), 1, "{folder}");
            assert!(complaints("notes.md", &format!("see example.org{folder}x\n")).is_empty());
        }
        assert_eq!(complaints("notes.md", "text \n"), ["notes.md:1: white space at the end of the line"]);
        assert_eq!(complaints("notes.md", "text"), ["notes.md: does not end in a newline"]);
    }
}
