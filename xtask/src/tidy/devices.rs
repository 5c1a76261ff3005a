//! Few files match on devices, and no `match` on devices has a catch-all arm.
//!
//! The library asks a device for its properties (`Device::has_own_memory` and others). A `match` that names
//! devices names all of them, because a catch-all arm would treat a new device like an old one.

use super::rules::lines_before_tests;

const LIBRARY: &str = "crates/heedful/src/";
/// Files of the library, without tests, that may name a device.
const MAX_FILES: usize = 5;

pub(super) fn check(texts: &[(String, String)], complaints: &mut Vec<String>) {
    let rust = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut naming = Vec::new();
    for (path, text) in rust {
        let lines: Vec<&str> = text.lines().map(code).collect();
        for index in leftovers(&lines) {
            let number = index + 1;
            complaints.push(format!("{path}:{number}: an arm for all other devices: name each of them"));
        }
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        if path.starts_with(LIBRARY)
            && !is_test
            && lines[..lines_before_tests(text)].iter().any(|line| names_device(line))
        {
            naming.push(path.as_str());
        }
    }
    if naming.len() > MAX_FILES {
        let (count, files) = (naming.len(), naming.join(", "));
        complaints.push(format!(
            "{LIBRARY}: {count} files name a device, over {MAX_FILES}: use its properties instead ({files})"
        ));
    }
}

/// The catch-all arms of `match` expressions that name devices in other arms.
fn leftovers(lines: &[&str]) -> Vec<usize> {
    let is_leftover = |&index: &usize| {
        let depth = indentation(lines[index]);
        // rustfmt indents all arms of a match equally, and the surrounding code less.
        let arms = lines[..index].iter().rev().filter(|line| !line.is_empty());
        let mut arms = arms.take_while(|line| indentation(line) >= depth);
        takes_the_rest(lines[index])
            && arms.any(|line| indentation(line) == depth && pattern(line).is_some_and(names_device))
    };
    (0..lines.len()).filter(is_leftover).collect()
}

/// Whether a line is an arm for `_`, for a name, or for a tuple of these.
fn takes_the_rest(line: &str) -> bool {
    let is_free = |pattern: &str| {
        let pattern = pattern.split(" if ").next().unwrap_or(pattern).trim();
        !pattern.is_empty() && pattern.chars().all(|c| c.is_ascii_lowercase() || "_(), ".contains(c))
    };
    line.contains("=>") && pattern(line).is_some_and(is_free)
}

/// The pattern of a match arm: before the arrow, or on a separate line of a multi-line pattern.
fn pattern(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let is_part = line.starts_with('|') || (line.starts_with("Device::") && !line.contains(['=', ';', ',']));
    line.split_once("=>").map(|(pattern, _)| pattern).or(is_part.then_some(line))
}

fn names_device(code: &str) -> bool {
    code.match_indices("Device::")
        .any(|(start, _)| !code[..start].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

/// A line without its comment and trailing blanks.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or(line).trim_end()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(texts: &[(&str, &str)]) -> Vec<String> {
        let texts: Vec<_> = texts.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        let mut complaints = Vec::new();
        check(&texts, &mut complaints);
        complaints
    }

    #[test]
    fn an_arm_for_all_other_devices_is_found() {
        for (first, last) in [
            ("Device::Cuda => 1,", "_ => 2,"),
            ("Device::Cuda if is_large => 1,", "_ => 2,"),
            ("(Device::Cpu, Kind::A) => 1,", "(device, _) => panic!(),"),
            ("Event::Ready(Ready { device: device @ Device::Cuda, .. }) => {}", "_ if is_large => {}"),
            ("Device::Cuda => {\n            f();\n        }", "other => 2,"),
            ("Device::Cpu\n        | Device::Cuda => 1,", "_ => 2,"),
        ] {
            let text = format!("    match device {{\n        {first}\n        {last}\n    }}\n");
            assert_eq!(complaints(&[("crates/cli/src/a.rs", &text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn other_matches_may_have_such_an_arm() {
        for text in [
            "    match device {\n        Device::Cpu => 1,\n        Device::Cuda => match x {\n            1 => 1,\n            _ => 2,\n        },\n    }\n",
            "    match word {\n        \"cuda\" => Device::Cuda,\n        _ => Device::Cpu,\n    }\n",
            "    match choice {\n        DeviceChoice::Cpu => 1,\n        _ => 2,\n    }\n",
            "    match device {\n        Device::Cpu => 1,\n        Device::Cuda => 2,\n    }\n    match x {\n        _ => 1,\n    }\n",
        ] {
            assert_eq!(complaints(&[("crates/cli/src/a.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn few_files_of_the_library_name_a_device() {
        let paths: Vec<String> = (0..6).map(|number| format!("{LIBRARY}{number}.rs")).collect();
        let of = |text: &'static str, count: usize| -> Vec<(&str, &str)> {
            paths[..count].iter().map(|path| (path.as_str(), text)).collect()
        };
        let named = "let device = Device::Cpu;\n";
        assert_eq!(complaints(&of(named, 5)), [""; 0]);
        assert_eq!(complaints(&of(named, 6)).len(), 1);
        assert_eq!(complaints(&of("// Device::Cpu\nlet choice = DeviceChoice::Cpu;\n", 6)), [""; 0]);
        assert_eq!(
            complaints(&of("#[cfg(test)]\nmod tests {\n    const A: Device = Device::Cpu;\n}\n", 6)),
            [""; 0]
        );
    }
}
