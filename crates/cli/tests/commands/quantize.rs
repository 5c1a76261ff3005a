//! `heedful quantize` as a process.

use crate::support::Workplace;

#[test]
fn a_quantized_model_translates_like_the_model_in_int8() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 30"));
    place.good("quantize run --to int8 -o small");
    place.good("quantize run --to bf16 -o half");
    let size = |folder: &str| place.read(&format!("{folder}/model.safetensors")).len();
    assert!(size("small") < size("half") && size("half") < size("run"));

    let translate = |words: &str| place.good(&format!("translate {words} valid.zh --scores"));
    let integers = translate("run --compute int8");
    assert_eq!(translate("small"), integers, "a model of integers computes with them");
    assert_eq!(translate("small --compute int8"), integers);
    assert_ne!(translate("run --compute f32"), integers);
    // A quantized model can be computed in any type.
    translate("small --compute f32");
    translate("half");

    let before = place.read("small/model.safetensors");
    place.good("seal small");
    assert!(place.read("small/model.safetensors") == before, "a seal changes nothing");
}

#[test]
fn model_options_are_kept_when_averaged_quantized_and_resumed() {
    let place = Workplace::new(60);
    for (name, flags) in [
        ("biased", "--output-bias --activation silu"),
        ("normed", "--norm-kind batch --activation gelu-tanh --output-bias true"),
        ("recurrent", "--family recurrent --output-bias"),
    ] {
        place.good(&Workplace::training(name, &format!("--steps 6 --checkpoint-keep-last 2 {flags}")));
        place.good(&format!("train --resume {name} --steps 8"));
        place.good(&format!("average {name} --last 2 --out {name}-average"));
        place.good(&format!("quantize {name} --to int8 -o {name}-small"));
        place.good(&format!("seal {name}-small"));
        for folder in [name, &format!("{name}-average"), &format!("{name}-small")] {
            place.good(&format!("translate {folder} valid.zh --scores"));
            let weights = place.read(&format!("{folder}/model.safetensors"));
            let names = String::from_utf8_lossy(&weights[..weights.len().min(1 << 16)]).into_owned();
            assert!(names.contains("output.bias"), "{folder}");
            assert_eq!(names.contains("norm.variance"), name == "normed", "{folder}");
        }
    }
    let error = place.bad(&Workplace::training("other", "--family recurrent --norm-kind batch"));
    assert!(error.contains("norm_kind") || error.contains("norm-kind"), "{error}");
}

#[test]
fn quantization_errors_give_a_reason() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 2"));
    place.good("quantize run --to int8 -o small");
    for (words, message) in [
        ("quantize small --to bf16 -o again", "int8 already"),
        ("quantize run --to int8 -o run", "run"),
        ("quantize run --to int8 -o small", "--force"),
        ("quantize nowhere --to int8 -o other", "nowhere"),
        ("quantize run --to int4 -o other", "int4"),
        ("quantize run -o other", "--to"),
        ("compare layers --compute int8", "int8 supports inference only"),
    ] {
        let complaint = place.bad(words);
        assert!(complaint.contains(message), "{words}: {complaint}");
    }
    // A flipped bit in the int8 weights is refused.
    let mut bytes = place.read("small/model.safetensors");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    place.write("small/model.safetensors", &bytes);
    let complaint = place.bad("translate small valid.zh");
    assert!(complaint.contains("checksum"), "{complaint}");
}
