//! The cells: what each compares, what it is called, and which of them are wanted.

use heedful::tensor::Precision;
use heedful::tensor::cpu::isa::Isa;

use super::model::Size;

const PRECISIONS: [Precision; 3] = [Precision::Int8, Precision::Bf16, Precision::F32];
const BATCHES: [usize; 3] = [1, 8, 32];
const BEAMS: [usize; 2] = [1, 4];
/// The threads of cells about something else than threads.
const FEW_THREADS: usize = 2;
/// The sentences of a batch with natural ends.
const TRAINED_BATCH: usize = 32;

/// What is special about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Random weights, outputs of a forced length.
    Forced(Size),
    /// The same with this instruction set on both sides.
    Isa(Isa),
    /// A trained model, natural ends.
    Trained,
}

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) kind: Kind,
    pub(super) precision: Precision,
    pub(super) batch: usize,
    pub(super) beam: usize,
    pub(super) threads: usize,
}

impl Spec {
    /// `int8 b32 beam4 2t`, with what is special about it around that.
    pub(super) fn name(self) -> String {
        let Spec { kind, precision, batch, beam, threads } = self;
        let plain = format!("{precision} b{batch} beam{beam} {threads}t");
        match kind {
            Kind::Forced(Size::Base) => plain,
            Kind::Forced(Size::Small) => format!("small {plain}"),
            Kind::Isa(isa) => format!("{plain} {isa}"),
            Kind::Trained => format!("{plain} trained"),
        }
    }
}

impl Kind {
    /// The size of its model, if that has random weights.
    pub(super) fn size(self) -> Option<Size> {
        match self {
            Kind::Forced(size) => Some(size),
            Kind::Isa(_) => Some(Size::Base),
            Kind::Trained => None,
        }
    }
}

/// All cells of random weights, those of one model side by side.
pub(super) fn random(threads: &[usize]) -> Vec<Spec> {
    let few: Vec<usize> = threads.iter().copied().filter(|&threads| threads == FEW_THREADS).collect();
    let isas = [Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.is_available());
    let mut kinds = vec![(Kind::Forced(Size::Base), threads)];
    kinds.extend(isas.map(|isa| (Kind::Isa(isa), &few[..])));
    kinds.push((Kind::Forced(Size::Small), threads));
    kinds.into_iter().flat_map(|(kind, threads)| grid(kind, &BATCHES, threads)).collect()
}

/// All cells of a trained model.
pub(super) fn trained(threads: &[usize]) -> Vec<Spec> {
    grid(Kind::Trained, &[TRAINED_BATCH], threads)
}

fn grid(kind: Kind, batches: &[usize], threads: &[usize]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for &batch in batches {
        for beam in BEAMS {
            for &threads in threads {
                specs.extend(PRECISIONS.map(|precision| Spec { kind, precision, batch, beam, threads }));
            }
        }
    }
    specs
}

/// Those that are measured in the same rounds.
pub(super) fn groups(specs: Vec<Spec>) -> Vec<Vec<Spec>> {
    let mut groups: Vec<Vec<Spec>> = Vec::new();
    for spec in specs {
        let same = |group: &Vec<Spec>| {
            let first = group[0];
            (first.kind, first.batch, first.beam) == (spec.kind, spec.batch, spec.beam)
        };
        match groups.iter_mut().find(|group| same(group)) {
            Some(group) => group.push(spec),
            None => groups.push(vec![spec]),
        }
    }
    groups
}

/// Words that a cell's name has, and words after a `-` that it does not have. All cells fit no words.
#[derive(Clone, Debug, Default)]
pub(super) struct Only(Vec<String>);

impl From<&str> for Only {
    fn from(text: &str) -> Only {
        Only(text.split_whitespace().map(str::to_owned).collect())
    }
}

impl Only {
    pub(super) fn fits(&self, name: &str) -> bool {
        let has = |word: &str| name.split(' ').any(|part| part == word);
        self.0.iter().all(|word| word.strip_prefix('-').map_or_else(|| has(word), |other| !has(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_called_by_type_batch_beam_and_threads() {
        let plain = Spec {
            kind: Kind::Forced(Size::Base),
            precision: Precision::Int8,
            batch: 32,
            beam: 4,
            threads: 2,
        };
        let named = |kind| Spec { kind, ..plain }.name();
        assert_eq!(plain.name(), "int8 b32 beam4 2t");
        assert_eq!(named(Kind::Forced(Size::Small)), "small int8 b32 beam4 2t");
        assert_eq!(named(Kind::Isa(Isa::Avx2)), "int8 b32 beam4 2t avx2");
        assert_eq!(named(Kind::Trained), "int8 b32 beam4 2t trained");
    }

    #[test]
    fn cells_are_chosen_by_words() {
        let only = Only::from("b1 2t -small");
        assert!(only.fits("int8 b1 beam1 2t"));
        assert!(only.fits("int8 b1 beam1 2t avx2"));
        assert!(!only.fits("int8 b1 beam1 12t"));
        assert!(!only.fits("small int8 b1 beam1 2t"));
        assert!(Only::default().fits("anything"));
    }

    #[test]
    fn a_group_has_all_types_and_threads_of_one_work() {
        let groups = groups(random(&[1, 2]));
        assert!(groups.iter().all(|group| group.iter().all(|spec| spec.kind == group[0].kind)));
        assert_eq!(groups[0].len(), 2 * PRECISIONS.len());
        let cells: usize = groups.iter().map(Vec::len).sum();
        assert_eq!(cells, random(&[1, 2]).len());
    }
}
