//! Translators of Hugging Face's transformers: MarianMT (the OPUS-MT translators), which is post-norm, and
//! Pegasus, the same with pre-norm layers.

use super::generation::Generation;
use super::huggingface::{Settings, tokenizers};
use super::ids::{self, Ids};
use super::importer::ParamImporter;
use super::pieces::{SentencePieceFile, SentencePieceModels};
use super::settings::{Sizes, transformer};
use super::{ImportError, Imported, languages, padding, positions, tables};
use crate::data::SpecialTokens;
use crate::data::tokenizer::{SIDE_PIECES, Tokenizers};
use crate::exchange::names::{StackShape, bart};
use crate::layers::{Halves, Norm, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::TransformerConfig;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::store::formats::{FormatError, JsonObject, json_object};
use crate::tasks::folder::Languages;

/// The embedding matrix of both sides.
const SHARED: &str = "model.shared.weight";

pub(super) fn read(
    folder: &HuggingFaceFolder,
    settings: &Settings<'_>,
    norm: Norm,
) -> Result<Imported, ImportError> {
    let mut from = ParamImporter::new(&folder.tensors);
    let generation = Generation::read(&folder.files, &folder.config)?;
    let mut config = configuration(settings, &generation, &from, norm)?;
    let (tokenizers, pieces) = vocabularies(folder, &config)?;
    config.special.suppressed = padding::with_padding(&tokenizers.target, generation.suppressed());
    gather(&mut from, &config)?;
    check_positions(&mut from, config.d_model)?;
    // `shared` duplicates the matrix of the encoder or decoder.
    from.ignore(|name| name == SHARED);
    let weights = from.finish()?;
    let config = EncoderDecoderConfig::Transformer(config).into();
    let kind = if norm == Norm::Post { "MarianMT" } else { "Pegasus" };
    let origin = format!("\nA {kind} model of Hugging Face.\n");
    let notes = generation.note().into_iter().collect();
    Ok(Imported {
        config,
        tokenizers,
        labels: None,
        languages: named_languages(folder)?,
        origin,
        notes,
        pieces,
        weights,
    })
}

/// The languages, if a file names them, as the tokenizer settings of OPUS-MT do.
fn named_languages(folder: &HuggingFaceFolder) -> Result<Option<Languages>, FormatError> {
    const SETTINGS: &str = "tokenizer_config.json";
    let named = |settings: &JsonObject| languages(settings, ["source_lang", "target_lang"]);
    let Some(bytes) = folder.files.find(SETTINGS)? else { return Ok(named(&folder.config)) };
    let settings = json_object(&folder.files.label(SETTINGS), &bytes)?;
    Ok(named(&settings).or_else(|| named(&folder.config)))
}

fn configuration(
    settings: &Settings<'_>,
    generation: &Generation,
    from: &ParamImporter<'_>,
    norm: Norm,
) -> Result<TransformerConfig, FormatError> {
    let both = |name: &str| -> Result<usize, FormatError> {
        let [encoder, decoder] =
            ["encoder", "decoder"].map(|stack| settings.whole(&format!("{stack}_{name}")));
        let (encoder, decoder) = (encoder?, decoder?);
        let unequal =
            || settings.unsupported(format!("{name} {encoder} in the encoder and {decoder} in the decoder"));
        if encoder == decoder { Ok(encoder) } else { Err(unequal()) }
    };
    if norm == Norm::Post {
        settings.must_be("normalize_before", false)?;
        settings.must_be("add_final_layer_norm", false)?;
    }
    let vocabulary = settings.whole("vocab_size")?;
    let sizes = Sizes {
        vocabularies: [vocabulary, settings.whole_or("decoder_vocab_size", vocabulary)?],
        d_model: settings.whole("d_model")?,
        d_ff: both("ffn_dim")?,
        heads: both("attention_heads")?,
        layers: [settings.whole("encoder_layers")?, settings.whole("decoder_layers")?],
    };
    let defaults = if norm == Norm::Post { &ids::MARIAN } else { &ids::PEGASUS };
    let ids = Ids { settings, generation, defaults, vocabulary: sizes.vocabularies[1] };
    let (bos, eos) = (ids.start()?, ids.eos()?);
    Ok(TransformerConfig {
        special: SpecialTokens {
            bos,
            eos,
            source_eos: Some(eos),
            pad: ids.pad(bos)?,
            ..SpecialTokens::default()
        },
        norm,
        activation: settings.activation("activation_function", "gelu")?,
        positions: Positions::Halves(Halves::MarianMt),
        scale_embeddings: settings.is("scale_embedding", false)?,
        tying: tables::tying(from, names(from)),
        output_bias: from.has("final_logits_bias"),
        ..transformer(&sizes)
    })
}

/// heedful computes the positions; checks that those in the files are the same.
fn check_positions(from: &mut ParamImporter<'_>, d_model: usize) -> Result<(), FormatError> {
    for name in ["encoder", "decoder"].map(|stack| format!("model.{stack}.embed_positions.weight")) {
        if from.has(&name) {
            let [length, _] = from.shape(&name)?;
            let table = from.tensor(&name, &[length, d_model])?.values();
            if !positions::are_sinusoids(Halves::MarianMt, &table, d_model) {
                return Err(from.unsupported(format!("other positions than sinusoids, in `{name}`")));
            }
        }
    }
    Ok(())
}

/// The names of the matrices of source, target and output; a missing one is tied.
fn names(from: &ParamImporter<'_>) -> [&'static str; 3] {
    let first = |names: [&'static str; 2]| if from.has(names[0]) { names[0] } else { names[1] };
    let target = first(["model.decoder.embed_tokens.weight", SHARED]);
    [first(["model.encoder.embed_tokens.weight", SHARED]), target, first(["lm_head.weight", target])]
}

/// The tokenizers of `source.spm` and `target.spm` with the ids of `vocab.json`, or of `tokenizer.json`; and
/// the SentencePiece models.
fn vocabularies(
    folder: &HuggingFaceFolder,
    config: &TransformerConfig,
) -> Result<(Tokenizers, Vec<SentencePieceFile>), ImportError> {
    let files = &folder.files;
    let sizes = [config.source_vocabulary, config.target_vocabulary];
    if files.find(SIDE_PIECES[0])?.is_none() && files.find("tokenizer.json")?.is_some() {
        return Ok((tokenizers(files, sizes)?, Vec::new()));
    }
    let tokens =
        |name: &str, size: usize| -> Result<Vec<String>, ImportError> { Ok(ids(files, name, size)?) };
    let source_tokens = tokens("vocab.json", sizes[0])?;
    let target_tokens = match files.find("target_vocab.json")? {
        Some(_) => tokens("target_vocab.json", sizes[1])?,
        None => source_tokens.clone(),
    };
    let (pieces, piece_files) = SentencePieceModels::of_sides(files, SIDE_PIECES)?;
    let [source, target] = pieces.sides();
    let tokenizers = Tokenizers::separate(
        source.tokenizer_for(&source_tokens, &special(&source_tokens))?,
        target.tokenizer_for(&target_tokens, &special(&target_tokens))?,
    );
    Ok((tokenizers, piece_files))
}

/// The special tokens, including those of padding rows.
fn special(tokens: &[String]) -> Vec<&str> {
    let rows = tokens.iter().enumerate().filter(|(id, token)| **token == padding::name(*id));
    ["</s>", "<pad>", "<s>"].into_iter().chain(rows.map(|(_, token)| token.as_str())).collect()
}

/// The tokens of a `vocab.json` in order of their ids, one for each row of the model.
fn ids(
    files: &crate::store::formats::files::Files,
    name: &str,
    size: usize,
) -> Result<Vec<String>, FormatError> {
    let bytes = files.get(name)?;
    let map: std::collections::BTreeMap<String, usize> = serde_json::from_slice(&bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        FormatError::damaged(
            files.label(name),
            place,
            format!("it is not a map from tokens to ids ({error})"),
        )
    })?;
    let mut tokens = vec![None; size];
    for (token, id) in map {
        match tokens.get_mut(id) {
            Some(entry @ None) => *entry = Some(token),
            _ => {
                let problem = format!("its id {id} is a duplicate, or the model has only {size} tokens");
                return Err(FormatError::damaged(files.label(name), format!("token `{token}`"), problem));
            }
        }
    }
    let named = tokens.into_iter().enumerate();
    Ok(named.map(|(id, token)| token.unwrap_or_else(|| padding::name(id))).collect())
}

fn gather(from: &mut ParamImporter<'_>, config: &TransformerConfig) -> Result<(), FormatError> {
    tables::gather(from, config, names(from))?;
    if config.output_bias {
        from.vector("output.bias", "final_logits_bias", config.target_vocabulary)?;
    }
    for shape in StackShape::both(config) {
        from.map(bart::stack(shape, &format!("model.{}", shape.name), "layer_norm"))?;
    }
    Ok(())
}
