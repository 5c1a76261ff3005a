//! Writes small valid files in the formats of other projects.

use flate2::Crc;

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

/// A `model.bin` of a version, with an alias if the version has them.
pub(super) fn ctranslate2(version: u32) -> Vec<u8> {
    let variable = |name: &str, shape: &[u32], (code, size): (u8, u8), data: &[u8]| {
        let shape: Vec<u8> = shape.iter().flat_map(|dim| dim.to_le_bytes()).collect();
        let rank = (shape.len() / 4) as u8;
        let stored = if version < 4 { data.len() as u32 / u32::from(size) } else { data.len() as u32 };
        let kind = if version < 4 { size } else { code };
        [text(name), vec![rank], shape, vec![kind], stored.to_le_bytes().to_vec(), data.to_vec()].concat()
    };
    let mut out = version.to_le_bytes().to_vec();
    if version >= 2 {
        out.extend(text("TransformerSpec"));
        out.extend(7_u32.to_le_bytes());
    }
    out.extend(4_u32.to_le_bytes());
    out.extend(variable("a/weight", &[2, 2], (1, 1), &[10, 20, 254, 4]));
    out.extend(variable("a/weight_scale", &[2], (0, 4), &[0, 0, 32, 65, 0, 0, 0, 64]));
    out.extend(variable("b/weight", &[1, 2], (2, 2), &[232, 3, 12, 254]));
    out.extend(variable("heads", &[], (1, 1), &[8]));
    if version >= 3 {
        out.extend(2_u32.to_le_bytes());
        out.extend([text("c/weight"), text("d/weight"), text("d/weight"), text("a/weight")].concat());
    }
    out
}

/// A Marian `.bin` with these settings.
pub(super) fn marian_bin(settings: &str) -> Vec<u8> {
    let embedding = [&[2, 4, 6, 8][..], &2.0_f32.to_le_bytes()].concat();
    let variables: [(&str, &[i32], u64, &[u8]); 3] = [
        ("Wemb", &[2, 2], 0x4101, &embedding),
        ("decoder_ff_logit_out_b", &[1, 1], 0x404, &[0; 4]),
        ("special:model.yml", &[settings.len() as i32], 0x101, settings.as_bytes()),
    ];
    let mut out = [1, variables.len() as u64].map(u64::to_le_bytes).as_flattened().to_vec();
    for (name, shape, code, data) in variables {
        let item = [name.len() as u64 + 1, code, shape.len() as u64, data.len() as u64];
        out.extend(item.map(u64::to_le_bytes).as_flattened());
    }
    variables.iter().for_each(|(name, ..)| out.extend([name.as_bytes(), &[0]].concat()));
    variables.iter().for_each(|(_, shape, ..)| out.extend(shape.iter().flat_map(|dim| dim.to_le_bytes())));
    out.extend(0_u64.to_le_bytes());
    variables.iter().for_each(|(.., data)| out.extend(*data));
    out
}

/// A one-dimensional `.npy`.
pub(super) fn array(kind: &str, count: usize, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// An archive of uncompressed members, with correct checksums.
pub(super) fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut checksum = Crc::new();
        checksum.update(content);
        let size = content.len() as u32;
        let middle = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            [checksum.sum(), size, size].map(u32::to_le_bytes).as_flattened(),
        ]
        .concat();
        let length = (name.len() as u16).to_le_bytes();
        let header = (out.len() as u32).to_le_bytes();
        directory.extend(
            [b"PK\x01\x02\x14\x00", &middle[..], &length, &[0; 12], &header, name.as_bytes()].concat(),
        );
        out.extend([b"PK\x03\x04", &middle[..], &length, &[0; 2], name.as_bytes(), content].concat());
    }
    let count = (members.len() as u16).to_le_bytes();
    let directory_location = [directory.len() as u32, out.len() as u32].map(u32::to_le_bytes);
    out.extend(
        [&directory[..], b"PK\x05\x06", &[0; 4], &count, &count, directory_location.as_flattened(), &[0; 2]]
            .concat(),
    );
    out
}

/// One tensor `x`.
pub(super) fn safetensors() -> Vec<u8> {
    let header = br#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  "#;
    [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat()
}

/// A SentencePiece model; kind 1 is unigram, 2 is BPE.
pub(super) fn sentencepiece(kind: u8) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8][..], bytes].concat();
    let piece = |text: &str, score: f32, kind: u8| {
        field(
            1,
            &[field(1, text.as_bytes()), vec![0x15], score.to_le_bytes().to_vec(), vec![0x18, kind]].concat(),
        )
    };
    let pieces = [
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, 3),
        ("</s>", 0.0, 3),
        ("▁", -3.0, 1),
        ("a", -4.0, 1),
        ("▁a", -5.0, 1),
    ];
    let mut out: Vec<u8> = pieces.iter().flat_map(|&(text, score, kind)| piece(text, score, kind)).collect();
    out.extend(field(2, &[0x18, kind]));
    out.extend(field(3, &[0x18, 1, 0x20, 1, 0x28, 1]));
    out
}

/// A BERT tokenizer.json.
pub(super) fn word_pieces() -> String {
    let special = |id: usize, name: &str| {
        format!(
            r#"{{"id":{id},"content":"{name}","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}}"#
        )
    };
    let added = ["[PAD]", "[UNK]", "[CLS]"]
        .iter()
        .enumerate()
        .map(|(id, name)| special(id, name))
        .collect::<Vec<_>>()
        .join(",");
    format!(
        r###"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{added}],
        "normalizer":{{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}},
        "pre_tokenizer":{{"type":"BertPreTokenizer"}},"post_processor":null,
        "decoder":{{"type":"WordPiece","prefix":"##","cleanup":true}},
        "model":{{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
        "vocab":{{"[PAD]":0,"[UNK]":1,"[CLS]":2,"the":3,"##s":4,"a":5}}}}}}"###
    )
}
