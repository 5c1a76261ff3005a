//! All steps of a decoder that attends before each step.

use bytemuck::{NoUninit, Zeroable};

use super::attend::source_gradients;
use super::{
    Argument, AttentionSettings, BatchBuffers, FAST, GENERIC, check_shared, most_shared, pointer, scratch,
    to_positions, zeros,
};
use crate::cuda::{Blocks, Gpu, Pointer, gpu};
use crate::ops::attention_rnn::{
    Decoder, DecoderGradients, Forward, RequestedOutputs, ResultGradients, SavedActivations,
    SavedForBackward, Selection,
};
use crate::ops::recurrent::Cell;
use crate::ops::recurrent::cuda::{
    self as recurrent, Pass, ROWS, Rows, name_of, shared_for_sums, shared_for_tiles,
};
use crate::{Array, DType, Ragged, Tensor};

/// As in `decoder.cu`.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct DecoderArgument {
    cell: recurrent::Argument,
    context_weight: Pointer,
    query_weight: Pointer,
    d_contexts: Pointer,
}

/// Units of a block of the fast kernels.
const UNITS: usize = 8;

/// The launch configuration of a fast kernel.
struct Fast {
    name: String,
    slices: usize,
    /// Bytes of shared memory without the cache of keys and values.
    shared: usize,
}

impl Fast {
    /// Elements of keys and values that a block caches over all steps: the remaining shared memory minus 64
    /// bytes of static use.
    fn cache_size(&self) -> usize {
        most_shared().saturating_sub(self.shared + 64) / 16 * 8
    }
}

impl Decoder {
    fn settings(&self) -> AttentionSettings<'_> {
        AttentionSettings {
            score: self.weights.score,
            score_weight: self.weights.score_weight.as_ref(),
            selection: self.selection,
            widths: [self.keys.width(), self.values.width()],
            longest: self.sources.longest(),
        }
    }

    fn width(&self) -> usize {
        self.weights.hidden.shape()[0]
    }

    /// The inputs of both passes.
    fn decoder_argument(&self, initial: [&Array; 2]) -> DecoderArgument {
        let weight = |param: &crate::Param| param.operand(self.dtype).pointer;
        let cell = recurrent::Argument {
            weight: weight(&self.weights.hidden),
            bias: self.weights.bias.as_ref().map_or(Pointer::NULL, |bias| bias.operand(DType::F32).pointer),
            initial_h: initial[0].pointer(),
            initial_c: initial[1].pointer(),
            carries: 1,
            ..recurrent::Argument::zeroed()
        };
        DecoderArgument {
            cell,
            context_weight: weight(&self.weights.context),
            query_weight: self.weights.query.as_ref().map_or(Pointer::NULL, weight),
            d_contexts: Pointer::NULL,
        }
    }

    /// The fast kernel, if it supports this decoder. The kernel's variant is the number of 8-column groups of
    /// queries in a block.
    fn fast(&self, pass: Pass) -> Option<Fast> {
        let multiprocessors = gpu().map_or(1, Gpu::multiprocessors);
        let (d, [key_width, value_width]) = (self.width(), [self.keys.width(), self.values.width()]);
        let slices = d.div_ceil(UNITS);
        let queries = self.weights.query.as_ref().map_or(0, |_| key_width.div_ceil(8 * slices));
        let is_even = [d, key_width, value_width].into_iter().all(|width| width.is_multiple_of(8));
        let fits = d <= 512 && value_width <= 16 * slices && queries <= 2 && slices <= multiprocessors;
        if self.dtype != DType::Bf16 || !is_even || !fits {
            return None;
        }
        let [forward, backward] = self.settings().shared();
        let shared = match pass {
            Pass::Forward => shared_for_sums(self.cell.gates().max(queries) * UNITS, UNITS) + forward,
            Pass::Backward => shared_for_sums(3 * UNITS, UNITS) + backward,
        };
        let name = format!("{}_fast_decoder_{pass}_{queries}", name_of(self.cell));
        (shared + 64 <= most_shared()).then_some(Fast { name, slices, shared })
    }

    /// Zero-initialized memory in which blocks that share a query exchange a value for each key.
    fn exchange_by_pair(&self, pass: Pass, buffers: &BatchBuffers) -> Option<Array> {
        self.fast(pass).map(|_| buffers.zeros())
    }

    /// Runs all steps. All blocks must be resident on the GPU at once.
    fn launch(&self, pass: Pass, decoder_argument: DecoderArgument, argument: Argument, targets: &Ragged) {
        let multiprocessors = gpu().map_or(1, Gpu::multiprocessors);
        let (rows, settings, d) = (Rows::of(targets), self.settings(), self.width());
        let (list, count) = (rows.list(), rows.count());
        if let Some(fast) = self.fast(pass) {
            let (slices, cache_size) = (fast.slices, fast.cache_size());
            let shared = fast.shared + 2 * cache_size;
            let groups = targets.sequences().div_ceil(ROWS).min(multiprocessors / slices);
            let blocks = Blocks { grid: [slices * groups, 1, 1], threads: 256, shared };
            let function = FAST.function_with_shared(fast.name, shared);
            let [width, slices, groups, cache_size] = [d, slices, groups, cache_size].map(|size| size as u32);
            launch!(
                function,
                blocks,
                decoder_argument,
                argument,
                list,
                count,
                width,
                slices,
                groups,
                cache_size
            );
            return;
        }
        let [forward, backward] = settings.shared();
        let (tiles, for_query) = match pass {
            Pass::Forward => (1 + self.cell.gates(), forward),
            Pass::Backward => (2, backward),
        };
        let shared = shared_for_tiles(tiles).max(for_query);
        check_shared(shared, settings.longest);
        let grid = if targets.sequences() == 0 { 0 } else { multiprocessors };
        let blocks = Blocks { grid: [grid, 1, 1], threads: 256, shared };
        let name = format!("{}_decoder_{pass}_{}", name_of(self.cell), self.dtype);
        let function = GENERIC.function_with_shared(name, shared);
        launch!(function, blocks, decoder_argument, argument, list, count, d as u32);
    }
}

/// All steps, from the states `[h, c]`, which are by sequence.
pub(in crate::ops::attention_rnn) fn forward(
    decoder: &Decoder,
    targets: &Ragged,
    x: &Tensor,
    initial: [&Array; 2],
    requested: RequestedOutputs,
) -> Forward {
    let Decoder { cell, dtype, selection, .. } = *decoder;
    let Decoder { keys, values, .. } = decoder;
    let (tokens, d) = (targets.tokens(), decoder.width());
    let [key_width, value_width] = [keys.width(), values.width()];
    let settings = decoder.settings();
    let buffers = BatchBuffers::new(targets, &decoder.sources, &decoder.mask);
    let is_hard = !matches!(selection, Selection::Soft);
    let is_narrow = dtype == DType::Bf16;
    let mut exchange = decoder.exchange_by_pair(Pass::Forward, &buffers);
    // Memory through which blocks exchange values must be zero at first.
    let out = Forward {
        states: zeros(DType::F32, tokens, d),
        states_narrow: is_narrow.then(|| zeros(DType::Bf16, tokens, d)),
        contexts: zeros(DType::F32, tokens, value_width),
        contexts_narrow: is_narrow.then(|| zeros(DType::Bf16, tokens, value_width)),
        weights: buffers.array(),
        choices: zeros(DType::F32, tokens, 2),
        taken: Vec::new(),
        scores: if requested.scores { exchange.take().or_else(|| Some(buffers.array())) } else { None },
        activations: SavedActivations {
            gates: scratch(dtype, tokens, cell.saved_values() * d),
            c: scratch(DType::F32, tokens, initial[1].width()),
            queries: zeros(DType::F32, tokens, key_width),
            taken: Some(scratch(DType::F32, if is_hard { tokens } else { 0 }, 1)),
        },
    };
    let mut decoder_argument = decoder.decoder_argument(initial);
    let x = x.array_as(dtype);
    decoder_argument.cell = recurrent::Argument {
        x: x.pointer(),
        outputs: out.states.pointer(),
        narrow: pointer(out.states_narrow.as_ref()),
        gates: out.activations.gates.pointer(),
        c: out.activations.c.pointer(),
        ..decoder_argument.cell
    };
    let (argument, _key) = settings.argument();
    let mut argument = Argument {
        keys: keys.pointer(),
        values: values.pointer(),
        queries: out.activations.queries.pointer(),
        contexts: out.contexts.pointer(),
        narrow: pointer(out.contexts_narrow.as_ref()),
        weights: out.weights.pointer(),
        scores: pointer(out.scores.as_ref().or(exchange.as_ref())),
        choices: out.choices.pointer(),
        taken: pointer(out.activations.taken.as_ref()),
        ..argument
    };
    buffers.fill(&mut argument);
    decoder.launch(Pass::Forward, decoder_argument, argument, targets);
    let positions = match &out.activations.taken {
        Some(taken) if is_hard && requested.weights => to_positions(taken),
        _ => vec![None; tokens],
    };
    Forward { taken: positions, ..out }
}

/// The gradients of [`forward`].
pub(in crate::ops::attention_rnn) fn backward(
    decoder: &Decoder,
    targets: &Ragged,
    inputs: &SavedForBackward,
    gradients: &ResultGradients<'_>,
) -> DecoderGradients {
    let Decoder { cell, dtype, .. } = *decoder;
    let Decoder { keys, values, .. } = decoder;
    let (tokens, sequences, d) = (targets.tokens(), targets.sequences(), decoder.width());
    let gates = cell.gates() * d;
    let settings = decoder.settings();
    let buffers = BatchBuffers::new(targets, &decoder.sources, &decoder.mask);
    let has_query = decoder.weights.query.is_some();
    // Memory through which blocks exchange values must be zero at first.
    let dx = zeros(dtype, tokens, gates);
    let da = (cell == Cell::Gru).then(|| zeros(dtype, tokens, gates));
    let dq = zeros(if has_query { dtype } else { DType::F32 }, tokens, keys.width());
    let d_contexts = zeros(DType::F32, tokens, values.width());
    let (de, exchange) = (buffers.array(), decoder.exchange_by_pair(Pass::Backward, &buffers));
    let [dh, past] = [(); 2].map(|()| scratch(DType::F32, sequences, d));
    let dc = scratch(DType::F32, sequences, inputs.c.width());
    let mut decoder_argument = decoder.decoder_argument([&inputs.h, &inputs.c]);
    decoder_argument.d_contexts = pointer(gradients.contexts);
    decoder_argument.cell = recurrent::Argument {
        outputs: inputs.states.pointer(),
        gates: inputs.activations.gates.pointer(),
        c: inputs.activations.c.pointer(),
        d_outputs: gradients.states.pointer(),
        dx: dx.pointer(),
        da: da.as_ref().unwrap_or(&dx).pointer(),
        dh: dh.pointer(),
        dc: dc.pointer(),
        past: past.pointer(),
        ..decoder_argument.cell
    };
    let (argument, _key) = settings.argument();
    let mut argument = Argument {
        keys: keys.pointer(),
        values: values.pointer(),
        queries: inputs.activations.queries.pointer(),
        weights: pointer(inputs.attention.as_deref()),
        scores: pointer(exchange.as_ref()),
        taken: pointer(inputs.activations.taken.as_ref()),
        d_contexts: d_contexts.pointer(),
        d_choices: pointer(gradients.choices),
        de: de.pointer(),
        dq: dq.pointer(),
        is_dq_wide: u32::from(!has_query),
        ..argument
    };
    buffers.fill(&mut argument);
    decoder.launch(Pass::Backward, decoder_argument, argument, targets);
    let [dk, dv, d_score_weight] = source_gradients(argument, targets, keys, values, settings.score);
    DecoderGradients { dx, da, dq, dk, dv, d_score_weight, dh, dc }
}
