//! Encoder-decoder models: `TransformerSpec`.

use super::{Names, activation, depth, epsilon, equal, id, is_scaled, missing_token, source_table};
use crate::data::SpecialTokens;
use crate::exchange::import::importer::ParamImporter;
use crate::exchange::import::settings::{Sizes, transformer};
use crate::exchange::import::{positions, tables};
use crate::exchange::names::{StackShape, ctranslate2 as names};
use crate::layers::{Halves, Norm, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::TransformerConfig;
use crate::store::formats::FormatError;
use crate::store::formats::ctranslate2::Ctranslate2Folder;
use crate::tasks::ModelConfig;

const STACKS: [&str; 2] = ["encoder", "decoder"];

pub(super) fn gather(
    model: &Ctranslate2Folder,
    from: &mut ParamImporter<'_>,
) -> Result<ModelConfig, FormatError> {
    let special = special_tokens(model, from)?;
    let tables = [source_table(from), "decoder/embeddings/weight", "decoder/projection/weight"];
    let [source, d_model] = from.shape(tables[0])?;
    let [target, _] = from.shape(tables[1])?;
    let vocabularies = [&model.source_vocabulary, &model.target_vocabulary].map(Vec::len);
    if vocabularies != [source, target] {
        let problem =
            format!("{vocabularies:?} tokens in the vocabularies, and {:?} in the weights", [source, target]);
        return Err(from.unsupported(problem));
    }
    let [d_ff, _] = from.shape("encoder/layer_0/ffn/linear_0/weight")?;
    let layers = STACKS.map(|stack| depth(from, stack));
    let heads = equal(from, &STACKS, "num_heads", 8.0)? as usize;
    let sizes = Sizes { vocabularies, d_model, d_ff, heads, layers };
    let is_pre_norm = equal(from, &STACKS, "pre_norm", 1.0)? != 0.0;
    let config = TransformerConfig {
        special,
        norm: if is_pre_norm { Norm::Pre } else { Norm::Post },
        norm_epsilon: epsilon(model),
        activation: activation(from, &STACKS)?,
        positions: positions_of(from, d_model)?,
        scale_embeddings: is_scaled(from, &STACKS, d_model)?,
        embedding_norm: from.has("encoder/layernorm_embedding/gamma"),
        tying: tables::tying(from, tables),
        output_bias: from.has("decoder/projection/bias"),
        ..transformer(&sizes)
    };
    tables::gather(from, &config, tables)?;
    if config.output_bias {
        from.vector("output.bias", "decoder/projection/bias", config.target_vocabulary)?;
    }
    for (shape, side) in StackShape::both(&config).into_iter().zip(["source", "target"]) {
        if config.embedding_norm {
            from.map(names::embedding_norm(&format!("{side}_embedding_norm"), shape.name, d_model))?;
        }
        from.map(names::stack(shape))?;
    }
    Ok(EncoderDecoderConfig::Transformer(config).into())
}

fn special_tokens(
    model: &Ctranslate2Folder,
    from: &mut ParamImporter<'_>,
) -> Result<SpecialTokens, FormatError> {
    let names = Names::of(&model.config);
    let mut flag = |name: &str, default: bool| -> Result<bool, FormatError> {
        Ok(from.scalar(name)?.map_or(default, |value| value != 0.0))
    };
    // Models before version 4 store these flags as variables.
    let source_bos = flag("with_source_bos", names.source_bos)?;
    let source_eos = flag("with_source_eos", names.source_eos)?;
    let target_bos = flag("with_target_bos", true)?;
    let start_from_zero = flag("decoder/start_from_zero_embedding", false)?;
    if source_bos || !target_bos {
        return Err(from.unsupported("a token before every source, or none before every target"));
    }
    let eos = id(&model.target_vocabulary, names.eos).ok_or_else(|| missing_token(model, names.eos))?;
    let bos = match id(&model.target_vocabulary, names.start) {
        Some(bos) => bos,
        // The token is irrelevant, since its vector is not read.
        None if start_from_zero => eos,
        None => return Err(missing_token(model, names.start)),
    };
    // A decoder that begins with the zero vector is Marian's, whose sources end with an end token: if
    // CTranslate2 does not add it, its caller does.
    let source_eos = match source_eos || start_from_zero {
        true => Some(id(&model.source_vocabulary, names.eos).ok_or_else(|| missing_token(model, names.eos))?),
        false => None,
    };
    let pad = ["<pad>", "<blank>"].iter().find_map(|name| id(&model.target_vocabulary, name)).unwrap_or(eos);
    Ok(SpecialTokens { bos, eos, source_eos, start_from_zero, pad, ..SpecialTokens::default() })
}

fn positions_of(from: &mut ParamImporter<'_>, d_model: usize) -> Result<Positions, FormatError> {
    let names = STACKS.map(|stack| format!("{stack}/position_encodings/encodings"));
    if !from.has(&names[0]) {
        return Ok(Positions::Halves(Halves::OpenNmt));
    }
    let mut kinds = Vec::new();
    for (name, ours) in names.iter().zip(["source_position.weight", "target_position.weight"]) {
        let [length, _] = from.shape(name)?;
        let table = from.tensor(name, &[length, d_model])?.values();
        kinds.push(positions::take(from, ours, &table, d_model));
    }
    match kinds[0] == kinds[1] {
        true => Ok(kinds[0]),
        false => Err(from.unsupported("different positions in the encoder and the decoder")),
    }
}
