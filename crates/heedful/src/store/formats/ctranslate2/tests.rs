use super::*;

/// A variable of a test file: name, shape, type code and data.
pub(in crate::store::formats) struct Written<'a>(
    pub(in crate::store::formats) &'a str,
    pub(in crate::store::formats) &'a [u32],
    pub(in crate::store::formats) u8,
    pub(in crate::store::formats) Vec<u8>,
);

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16 + 1).to_le_bytes());
    out.extend(text.as_bytes());
    out.push(0);
}

pub(in crate::store::formats) fn written(
    version: u32,
    variables: &[Written<'_>],
    aliases: &[(&str, &str)],
) -> Vec<u8> {
    let mut out = version.to_le_bytes().to_vec();
    if version >= 2 {
        text(&mut out, "TransformerSpec");
        out.extend(7_u32.to_le_bytes());
    }
    out.extend((variables.len() as u32).to_le_bytes());
    for Written(name, shape, code, data) in variables {
        text(&mut out, name);
        out.push(shape.len() as u8);
        out.extend(shape.iter().flat_map(|dim| dim.to_le_bytes()));
        let sizes = [4_u8, 1, 2, 4, 2, 2];
        let size = sizes[usize::from(*code)];
        match version {
            1..=3 => {
                out.push(size);
                out.extend((data.len() as u32 / u32::from(size)).to_le_bytes());
            }
            _ => {
                out.push(*code);
                out.extend((data.len() as u32).to_le_bytes());
            }
        }
        out.extend(data);
    }
    if version >= 3 {
        out.extend((aliases.len() as u32).to_le_bytes());
        for (alias, target) in aliases {
            text(&mut out, alias);
            text(&mut out, target);
        }
    }
    out
}

pub(in crate::store::formats) fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn small(version: u32) -> Vec<u8> {
    let shorts = [1000_i16, -500].iter().flat_map(|value| value.to_le_bytes()).collect();
    let variables = [
        Written("a/weight", &[2, 2], 1, vec![10, 20, 0xFE, 4]),
        Written("a/weight_scale", &[2], 0, floats(&[10.0, 2.0])),
        Written("b/weight", &[1, 2], 2, shorts),
        Written("heads", &[], 1, vec![8]),
    ];
    written(version, &variables, &[("c/weight", "d/weight"), ("d/weight", "a/weight")])
}

fn read(bytes: &[u8]) -> Result<Ctranslate2Weights, FormatError> {
    Ctranslate2Weights::read("model.bin", bytes.to_vec().into())
}

#[test]
fn the_variables_of_every_version_are_read() {
    for version in 1..=6 {
        let weights = read(&small(version)).expect("a whole file");
        assert_eq!(weights.specification, if version == 1 { "" } else { "TransformerSpec" });
        let values = |name: &str| weights.tensors.get(name).expect("a variable").values();
        assert_eq!(values("a/weight"), [1.0, 2.0, -1.0, 2.0], "version {version}");
        assert_eq!(values("b/weight"), [1.0, -0.5]);
        assert_eq!(weights.tensors.get("heads").expect("a number").scalar(), Some(8.0));
        if version >= 3 {
            assert_eq!(values("c/weight"), values("a/weight"));
            assert_eq!(values("d/weight"), values("a/weight"));
        }
    }
}

#[test]
fn every_truncation_is_rejected_with_its_position() {
    for version in 1..=6 {
        let whole = small(version);
        for end in 0..whole.len() {
            let message = read(&whole[..end]).expect_err("a part").to_string();
            assert!(message.starts_with("model.bin is damaged at byte "), "{end}: {message}");
        }
        assert!(read(&[&whole[..], b"x"].concat()).expect_err("more").to_string().contains("1 bytes follow"));
    }
}

#[test]
fn wrong_counts_shapes_and_aliases_are_rejected() {
    let refused = |bytes: &[u8]| read(bytes).expect_err("a bad file").to_string();
    let one = |shape: &[u32], data: &[f32]| written(6, &[Written("x", shape, 0, floats(data))], &[]);
    assert!(refused(&one(&[3], &[1.0, 2.0])).contains("variable `x`: the shape [3]"));
    assert!(refused(&one(&[u32::MAX; 8], &[1.0])).contains("does not fit"));
    let aliased =
        |aliases: &[(&str, &str)]| refused(&written(6, &[Written("x", &[], 0, floats(&[1.0]))], aliases));
    assert!(aliased(&[("a", "b"), ("b", "c"), ("c", "a")]).contains("cycle"));
    assert!(aliased(&[("a", "a")]).contains("cycle"));
    assert!(aliased(&[("a", "y")]).contains("no variable `y`"));
    assert!(aliased(&[("x", "x")]).contains("duplicate"));
    let integers = |scale: &[f32]| {
        let weight = Written("w", &[2, 1], 1, vec![1, 2]);
        let scales = Written("w_scale", &[scale.len() as u32], 0, floats(scale));
        if scale.is_empty() { written(6, &[weight], &[]) } else { written(6, &[weight, scales], &[]) }
    };
    assert!(refused(&integers(&[])).contains("no `w_scale`"));
    assert!(refused(&integers(&[1.0, 2.0, 3.0])).contains("2 rows and 3 scales"));
    let mut many = small(6);
    let count = 4 + 2 + "TransformerSpec".len() + 1 + 4;
    many[count..count + 4].fill(0xFF);
    assert!(refused(&many).contains("model.bin is damaged at byte"));
    assert!(refused(&7_u32.to_le_bytes()).contains("version 7"));
}

#[test]
fn the_vocabularies_of_a_folder_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Files::Folder(folder.path().to_owned());
    let write = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).expect("a writable folder");
    };
    let refused = |files: &Files| Ctranslate2Folder::open(files).expect_err("a part").to_string();
    assert!(refused(&files).contains("no file model.bin"));
    write("model.bin", &small(2));
    assert!(refused(&files).contains("no file shared_vocabulary.json"));
    write("source_vocabulary.txt", b"<unk>\r\n\xE2\x96\x81a\r\n");
    assert!(refused(&files).contains("no file target_vocabulary.json"));
    write("target_vocabulary.txt", b"<unk>\nb\r\n\n");
    let opened = Ctranslate2Folder::open(&files).expect("a folder");
    assert_eq!(opened.source_vocabulary, ["<unk>", "▁a"]);
    assert_eq!(opened.target_vocabulary, ["<unk>", "b\r", ""]);
    write("shared_vocabulary.json", br#"["</s>", "x"]"#);
    write("config.json", br#"{"add_source_eos": true}"#);
    let opened = Ctranslate2Folder::open(&files).expect("a folder");
    assert_eq!(opened.target_vocabulary, ["</s>", "x"]);
    assert_eq!(opened.config["add_source_eos"], true);
    write("config.json", b"{\"a\": }");
    assert!(refused(&files).contains("config.json is damaged at line 1"));
}
