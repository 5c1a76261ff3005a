use heedful_tensor::ops::{EmbeddingOptions, NO_TOKEN, Positions, SinusoidLayout, embedding};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Ragged, Tensor};

use super::dropouts;
use crate::support::reference::M;
use crate::support::{Case, Run, Values};

const SCALE: f32 = 5.5;
const VOCABULARY: usize = 11;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    None,
    Sinusoidal(SinusoidLayout),
    Learned,
    /// No positions, and the first token of every sequence is `NO_TOKEN` (a zero vector).
    WithoutFirstToken,
}

#[derive(Clone)]
struct Setting {
    lengths: Vec<usize>,
    kind: Kind,
    first_position: usize,
    dropout: Dropout,
}

impl Setting {
    fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> =
            (0..self.lengths.iter().sum::<usize>() as u32).map(|t| t * t % VOCABULARY as u32).collect();
        if self.kind == Kind::WithoutFirstToken {
            Ragged::from_lengths(self.lengths.clone()).ranges().for_each(|range| ids[range.start] = NO_TOKEN);
        }
        ids
    }

    fn forward(&self, run: &Run) -> Tensor {
        let positions = match self.kind {
            Kind::None | Kind::WithoutFirstToken => Positions::None,
            Kind::Sinusoidal(waves) => Positions::Sinusoidal(waves),
            Kind::Learned => Positions::Learned(&run.p[1]),
        };
        let (first_position, dropout, compute) = (self.first_position, self.dropout, run.compute);
        let options = EmbeddingOptions { scale: SCALE, positions, first_position, dropout, compute };
        embedding(&self.ids(), &Ragged::from_lengths(self.lengths.clone()), &run.p[0], options)
    }

    fn reference(&self, m: &[M]) -> M {
        let positions: Vec<usize> =
            self.lengths.iter().flat_map(|&n| (0..n).map(|i| i + self.first_position)).collect();
        let width = m[0].width;
        let wave = |waves: SinusoidLayout, position: usize, column: usize| {
            let (pair, is_sine, exponent) = match waves {
                SinusoidLayout::Interleaved => (column / 2, column.is_multiple_of(2), 2.0 / width as f64),
                SinusoidLayout::Halves => (column % (width / 2), column < width / 2, 2.0 / width as f64),
                SinusoidLayout::HalvesInclusive => {
                    (column % (width / 2), column < width / 2, 1.0 / (width as f64 / 2.0 - 1.0))
                }
            };
            let angle = position as f64 / 10_000_f64.powf(pair as f64 * exponent);
            if is_sine { angle.sin() } else { angle.cos() }
        };
        let ids = self.ids();
        M::build(ids.len(), width, |t, c| {
            let position = match self.kind {
                Kind::None | Kind::WithoutFirstToken => 0.0,
                Kind::Sinusoidal(waves) => wave(waves, positions[t], c),
                Kind::Learned => m[1].at(positions[t], c),
            };
            let token = if ids[t] == NO_TOKEN { 0.0 } else { m[0].at(ids[t] as usize, c) };
            f64::from(SCALE) * token + position
        })
        .dropped(self.dropout)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (lengths, width, first_position) in
        [(vec![1], 7, 0), (vec![1, 50, 3], 33, 0), (vec![1, 50, 3], 100, 2), (vec![2, 1], 64, 9)]
    {
        let waves = [SinusoidLayout::Interleaved, SinusoidLayout::Halves, SinusoidLayout::HalvesInclusive]
            .map(Kind::Sinusoidal);
        for kind in waves.into_iter().chain([Kind::None, Kind::Learned, Kind::WithoutFirstToken]) {
            if matches!(kind, Kind::Sinusoidal(_)) && width % 2 == 1 {
                continue;
            }
            for dropout in dropouts() {
                let setting = Setting { lengths: lengths.clone(), kind, first_position, dropout };
                let again = setting.clone();
                let name = format!("embedding {lengths:?}×{width} {kind:?} dropout {}", !dropout.is_none());
                let mut case = Case::new(name, move |run| setting.forward(run), move |m| again.reference(m))
                    .param(VOCABULARY, width, Values::Within(1.0));
                if kind == Kind::Learned {
                    case = case.param(52, width, Values::Within(1.0));
                }
                cases.push(case);
            }
        }
    }
    cases
}
