//! The reference of the Python package, from its type stubs.

/// A section for each class and function, with its signature and documentation.
pub(super) fn page(stub: &str) -> String {
    let mut page = String::from(
        "# Python reference\n\nGenerated from the type stubs of the package; [the guide](../python.md) has examples.\n",
    );
    let lines: Vec<&str> = stub.lines().collect();
    let is_start = |line: &str| line.starts_with("class ") || line.starts_with("def ");
    let mut starts: Vec<usize> = (0..lines.len()).filter(|&index| is_start(lines[index])).collect();
    starts.push(lines.len());
    let mut last = "";
    for bounds in starts.windows(2) {
        let body = &lines[bounds[0]..bounds[1]];
        let name = body[0].trim_start_matches("class ").trim_start_matches("def ");
        let name = name.split(['(', ':']).next().unwrap_or(name);
        // Overloads of a function follow each other.
        if name != last {
            page += &format!("\n## {name}\n");
        }
        last = name;
        let end = body.len() - body.iter().rev().take_while(|line| is_between(line)).count();
        page += &format!("\n```python\n{}\n```\n", body[..end].join("\n"));
    }
    page
}

/// Whether a line is blank, a decorator or a comment between two sections.
fn is_between(line: &str) -> bool {
    line.is_empty() || line.starts_with('@') || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_functions_have_sections() {
        let page = page(
            "import x\n\n@final\nclass A:\n    \"\"\"An a.\"\"\"\n    b: int\n\n@overload\ndef f(x: int) -> int: ...\n\ndef f() -> str: ...\n",
        );
        assert!(
            page.contains("\n## A\n\n```python\nclass A:\n    \"\"\"An a.\"\"\"\n    b: int\n```\n"),
            "{page}"
        );
        assert_eq!(page.matches("## f").count(), 1, "{page}");
    }
}
