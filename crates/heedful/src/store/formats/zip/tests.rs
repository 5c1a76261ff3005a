use super::*;

/// An archive with these members, stored or deflated.
pub(in crate::store::formats) fn written(members: &[(&str, &[u8])], method: u16) -> Vec<u8> {
    let pack =
        |content: &[u8]| (method, if method == STORED { content.to_vec() } else { write::deflated(content) });
    write::written(members, pack).expect("a small archive")
}

fn opened(bytes: Vec<u8>) -> Result<Archive, FormatError> {
    Archive::new("some.zip", bytes.into())
}

fn message(bytes: Vec<u8>) -> String {
    let read = opened(bytes).and_then(|archive| {
        let names: Vec<String> = archive.names().map(str::to_owned).collect();
        names.iter().try_for_each(|name| archive.read(name).map(drop))
    });
    read.expect_err("a bad archive").to_string()
}

#[test]
fn highly_compressible_members_are_read_back() {
    let zeros = vec![0; 3 << 20];
    let archive = opened(write::archive(&[("zeros", &zeros)]).expect("a small archive")).expect("no bomb");
    assert_eq!(archive.read("zeros").expect("good bytes").map(|bytes| bytes.len()), Some(zeros.len()));
}

#[test]
fn members_are_read_back() {
    let long = b"many ".repeat(500);
    for method in [STORED, DEFLATED] {
        let archive = opened(written(&[("a/b.txt", b"text"), ("a/", b""), ("long", &long)], method))
            .expect("an archive");
        assert_eq!(archive.names().collect::<Vec<_>>(), ["a/b.txt", "long"]);
        let read = |name| archive.read(name).expect("good bytes").map(|bytes| bytes.to_vec());
        assert_eq!(read("a/b.txt"), Some(b"text".to_vec()));
        assert_eq!(read("long").as_deref(), Some(&long[..]));
        assert_eq!(read("b.txt"), None);
    }
    assert!(opened(written(&[], STORED)).expect("an archive").names().next().is_none());
}

#[test]
fn every_truncation_is_rejected() {
    for method in [STORED, DEFLATED] {
        let whole = written(&[("one", b"first"), ("two", b"second")], method);
        for end in 0..whole.len() {
            assert!(message(whole[..end].to_vec()).starts_with("some.zip"), "{end}");
        }
    }
}

#[test]
fn names_that_lead_out_of_the_folder_are_rejected() {
    for name in ["../x", "a/../x", "/x", "a//x", "C:x", "a\\x", "./x", "a\u{0}b", ""] {
        assert!(message(written(&[(name, b"1")], STORED)).contains("leads out"), "{name:?}");
    }
    assert!(message(written(&[("a", b"1"), ("A", b"2")], STORED)).contains("duplicate"));
}

#[test]
fn bombs_links_passwords_and_overlaps_are_rejected() {
    let zeros = vec![0; 2 << 20];
    assert!(message(written(&[("zeros", &zeros)], DEFLATED)).contains("do not unpack"));
    let whole = written(&[("one", b"first")], STORED);
    let entry = whole.windows(4).position(|part| part == ENTRY).expect("an entry");
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = whole.clone();
        changes.iter().for_each(|&(at, byte)| bytes[entry + at] = byte);
        message(bytes)
    };
    assert!(with(&[(41, 0xA1)]).contains("link"));
    assert!(with(&[(8, 1)]).contains("password"));
    assert!(with(&[(10, 12)]).contains("method 12"));
    assert!(with(&[(16, 0)]).contains("checksum"));
    assert!(with(&[(24, 9)]).contains("do not unpack to 9"));
    assert!(with(&[(42, 1)]).contains("header is not where"));
    // The second entry points to the first member's data.
    let mut two = written(&[("one", b"first"), ("one", b"first")], STORED);
    let second = two.windows(4).rposition(|part| part == ENTRY).expect("an entry");
    two[second + 42..second + 46].fill(0);
    let opened = message(two);
    assert!(opened.contains("duplicate") || opened.contains("overlap"), "{opened}");
}
