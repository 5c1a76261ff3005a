//! Models of one stack: a decoder (language model) or an encoder (masked language model).

use super::{Names, activation, depth, epsilon, equal, id, is_scaled, missing_token, source_table};
use crate::data::SpecialTokens;
use crate::exchange::import::importer::ParamImporter;
use crate::exchange::import::settings::{LABEL_SMOOTHING, stack};
use crate::exchange::import::{ImportError, Imported, bert, positions};
use crate::exchange::names::bert::HEAD;
use crate::exchange::names::{StackShape, ctranslate2 as names};
use crate::layers::{Halves, Norm, Positions};
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;
use crate::store::formats::ctranslate2::Ctranslate2Folder;
use crate::store::formats::files::Files;
use crate::store::formats::huggingface;
use crate::tasks::ModelConfig;
use crate::tasks::language::{LanguageConfig, TextShape};
use crate::tasks::masked::MaskedConfig;

pub(super) const DECODER: &str = "TransformerDecoderSpec";
pub(super) const ENCODER: &str = "TransformerEncoderSpec";

/// Imports a decoder-only model.
pub(super) fn language(
    model: &Ctranslate2Folder,
    from: &mut ParamImporter<'_>,
) -> Result<ModelConfig, FormatError> {
    let tables = ["decoder/embeddings/weight", "decoder/projection/weight"];
    let stack = gather(model, from, "decoder", tables[0])?;
    if !from.are_equal(tables) {
        return Err(from.unsupported("an output projection that is not tied to the embedding"));
    }
    from.tensor(tables[1], &[stack.vocabulary, stack.d_model])?;
    let output_bias = from.has("decoder/projection/bias");
    if output_bias {
        from.vector("output.bias", "decoder/projection/bias", stack.vocabulary)?;
    }
    from.ignore(|name| name == "decoder/start_from_zero_embedding");
    let (text, label_smoothing, block) = (TextShape::Running, 0.0, stack.positions.longest());
    Ok(LanguageConfig { stack: stack.into(), text, block, label_smoothing, output_bias }.into())
}

/// Imports an encoder; its masked-token head is in a separate file ([`read_head`]).
pub(super) fn masked(
    model: &Ctranslate2Folder,
    from: &mut ParamImporter<'_>,
) -> Result<ModelConfig, FormatError> {
    let stack = gather(model, from, "encoder", source_table(from))?;
    Ok(MaskedConfig { stack, label_smoothing: LABEL_SMOOTHING, output_bias: false }.into())
}

/// Adds the masked-token head, which CTranslate2's encoders do not have, from the separate file of an export;
/// without this file the head is untrained.
pub(super) fn read_head(imported: &mut Imported, files: &Files) -> Result<(), ImportError> {
    let ModelConfig::Masked(config) = &mut imported.config else { return Ok(()) };
    let tensors = match files.find(huggingface::HEAD)? {
        Some(bytes) => huggingface::read_tensors(&files.label(huggingface::HEAD), &bytes)?,
        None => huggingface::no_tensors(&files.label("")),
    };
    let mut from = ParamImporter::new(&tensors);
    if !bert::head_or_untrained(&mut from, config)? {
        imported.origin.push_str(bert::UNTRAINED);
    }
    let output = format!("{HEAD}.decoder.weight");
    if from.has(&output) {
        let shape = [config.stack.vocabulary, config.stack.d_model];
        let table = from.tensor(&output, &shape)?.values();
        if imported.weights.get("embedding.weight") != Some(&table) {
            return Err(from.unsupported("an output projection that is not tied to the embedding").into());
        }
    }
    let head = from.finish()?;
    imported.weights = imported.weights.with(&head);
    Ok(())
}

fn gather(
    model: &Ctranslate2Folder,
    from: &mut ParamImporter<'_>,
    name: &'static str,
    table: &str,
) -> Result<StackConfig, FormatError> {
    let [vocabulary, d_model] = from.shape(table)?;
    if model.source_vocabulary.len() != vocabulary {
        let tokens = model.source_vocabulary.len();
        return Err(
            from.unsupported(format!("{tokens} tokens in the vocabulary, and {vocabulary} in the weights"))
        );
    }
    let [d_ff, _] = from.shape(&format!("{name}/layer_0/ffn/linear_0/weight"))?;
    let heads = equal(from, &[name], "num_heads", 8.0)? as usize;
    let is_pre_norm = equal(from, &[name], "pre_norm", 1.0)? != 0.0;
    let encodings = format!("{name}/position_encodings/encodings");
    let positions = match from.has(&encodings) {
        false => Positions::Halves(Halves::OpenNmt),
        true => {
            let [length, _] = from.shape(&encodings)?;
            let values = from.tensor(&encodings, &[length, d_model])?.values();
            positions::take(from, "position.weight", &values, d_model)
        }
    };
    let config = StackConfig {
        special: special_tokens(model)?,
        norm: if is_pre_norm { Norm::Pre } else { Norm::Post },
        norm_epsilon: epsilon(model),
        activation: activation(from, &[name])?,
        positions,
        scale_embeddings: is_scaled(from, &[name], d_model)?,
        embedding_norm: from.has(&format!("{name}/layernorm_embedding/gamma")),
        ..stack(vocabulary, [d_model, d_ff], heads, depth(from, name))
    };
    from.matrix("embedding.weight", table, [vocabulary, d_model])?;
    if config.embedding_norm {
        from.map(names::embedding_norm("embedding_norm", name, d_model))?;
    }
    from.map(names::stack(StackShape::single(name, &config)))?;
    Ok(config)
}

fn special_tokens(model: &Ctranslate2Folder) -> Result<SpecialTokens, FormatError> {
    let (names, tokens) = (Names::of(&model.config), &model.source_vocabulary);
    let find = |name: &str| id(tokens, name);
    let [bos, eos] = match [find(names.bos), find(names.eos)] {
        [Some(bos), Some(eos)] => [bos, eos],
        // BERT's special tokens, which surround texts.
        _ => match [find("[CLS]"), find("[SEP]")] {
            [Some(first), Some(last)] => [first, last],
            _ => return Err(missing_token(model, names.eos)),
        },
    };
    let around = |name: &str| find(name).filter(|_| find(names.bos).is_none());
    Ok(SpecialTokens {
        bos,
        eos,
        text_first: around("[CLS]"),
        text_last: around("[SEP]"),
        mask: find("[MASK]").unwrap_or(SpecialTokens::default().mask),
        pad: ["<pad>", "<blank>", "[PAD]"].iter().find_map(|name| find(name)).unwrap_or(eos),
        ..SpecialTokens::default()
    })
}
