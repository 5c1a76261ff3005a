//! The cells: their parameters, names and selection.

use heedful::tensor::Precision;
use heedful::tensor::cpu::isa::Isa;

use super::model::Size;

const PRECISIONS: [Precision; 3] = [Precision::Int8, Precision::Bf16, Precision::F32];
const BATCHES: [usize; 3] = [1, 8, 32];
const BEAMS: [usize; 2] = [1, 4];
const FILE_BEAMS: [usize; 2] = [1, 5];
/// The threads of cells that do not vary the thread count.
const DEFAULT_THREADS: usize = 2;
/// The batch size for a trained model.
const TRAINED_BATCH: usize = 32;

/// The variant of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// Random weights, outputs of fixed length.
    Forced(Size),
    /// As `Forced(Size::Base)`, with this instruction set on both sides.
    Isa(Isa),
    /// As `Forced(Size::Base)`, with shortlists.
    Lists,
    /// A trained model that ends its outputs itself.
    Trained,
    /// The same with its shortlist.
    TrainedLists,
    /// A trained model and a whole file at once.
    File,
}

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) variant: Variant,
    pub(super) precision: Precision,
    pub(super) batch: usize,
    pub(super) beam: usize,
    pub(super) threads: usize,
}

impl Spec {
    /// `int8 b32 beam4 2t`, with the variant before or after it.
    pub(super) fn name(self) -> String {
        let Spec { variant, precision, batch, beam, threads } = self;
        let plain = format!("{precision} b{batch} beam{beam} {threads}t");
        match variant {
            Variant::Forced(Size::Base) => plain,
            Variant::Forced(Size::Small) => format!("small {plain}"),
            Variant::Isa(isa) => format!("{plain} {isa}"),
            Variant::Lists => format!("{plain} lists"),
            Variant::Trained => format!("{plain} trained"),
            Variant::TrainedLists => format!("{plain} trained lists"),
            Variant::File => format!("{precision} beam{beam} {threads}t file"),
        }
    }
}

impl Variant {
    /// The size of its model, if it has random weights.
    pub(super) fn size(self) -> Option<Size> {
        match self {
            Variant::Forced(size) => Some(size),
            Variant::Isa(_) | Variant::Lists => Some(Size::Base),
            Variant::Trained | Variant::TrainedLists | Variant::File => None,
        }
    }
}

/// All cells with random weights, grouped by model.
pub(super) fn random(threads: &[usize]) -> Vec<Spec> {
    let few: Vec<usize> = threads.iter().copied().filter(|&threads| threads == DEFAULT_THREADS).collect();
    let isas = [Isa::Avx2, Isa::AvxVnni, Isa::Avx512].into_iter().filter(|isa| isa.is_available());
    let mut variants = vec![(Variant::Forced(Size::Base), threads)];
    variants.extend(isas.map(|isa| (Variant::Isa(isa), &few[..])));
    variants.push((Variant::Lists, threads));
    variants.push((Variant::Forced(Size::Small), threads));
    variants.into_iter().flat_map(|(variant, threads)| grid(variant, &BATCHES, threads, BEAMS)).collect()
}

/// All cells of a trained model.
pub(super) fn trained(threads: &[usize]) -> Vec<Spec> {
    let mut specs = grid(Variant::Trained, &[TRAINED_BATCH], threads, BEAMS);
    specs.extend(grid(Variant::TrainedLists, &[TRAINED_BATCH], threads, BEAMS));
    // The batch size is each side's own.
    specs.extend(grid(Variant::File, &[0], threads, FILE_BEAMS));
    specs
}

fn grid(variant: Variant, batches: &[usize], threads: &[usize], beams: [usize; 2]) -> Vec<Spec> {
    let mut specs = Vec::new();
    for &batch in batches {
        for beam in beams {
            for &threads in threads {
                specs.extend(PRECISIONS.map(|precision| Spec { variant, precision, batch, beam, threads }));
            }
        }
    }
    specs
}

/// Groups the cells that are measured in the same rounds.
pub(super) fn groups(specs: Vec<Spec>) -> Vec<Vec<Spec>> {
    let mut groups: Vec<Vec<Spec>> = Vec::new();
    for spec in specs {
        let same = |group: &Vec<Spec>| {
            let first = group[0];
            (first.variant, first.batch, first.beam) == (spec.variant, spec.batch, spec.beam)
        };
        match groups.iter_mut().find(|group| same(group)) {
            Some(group) => group.push(spec),
            None => groups.push(vec![spec]),
        }
    }
    groups
}

/// Words that a cell's name must contain, and words after a `-` that it must not contain. An empty filter
/// matches all cells.
#[derive(Clone, Debug, Default)]
pub(super) struct CellFilter(Vec<String>);

impl From<&str> for CellFilter {
    fn from(text: &str) -> CellFilter {
        CellFilter(text.split_whitespace().map(str::to_owned).collect())
    }
}

impl CellFilter {
    pub(super) fn matches(&self, name: &str) -> bool {
        let has = |word: &str| name.split(' ').any(|part| part == word);
        self.0.iter().all(|word| word.strip_prefix('-').map_or_else(|| has(word), |other| !has(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_named_by_type_batch_beam_and_threads() {
        let plain = Spec {
            variant: Variant::Forced(Size::Base),
            precision: Precision::Int8,
            batch: 32,
            beam: 4,
            threads: 2,
        };
        let named = |variant| Spec { variant, ..plain }.name();
        assert_eq!(plain.name(), "int8 b32 beam4 2t");
        assert_eq!(named(Variant::Forced(Size::Small)), "small int8 b32 beam4 2t");
        assert_eq!(named(Variant::Isa(Isa::Avx2)), "int8 b32 beam4 2t avx2");
        assert_eq!(named(Variant::File), "int8 beam4 2t file");
        assert_eq!(named(Variant::Trained), "int8 b32 beam4 2t trained");
        assert_eq!(named(Variant::TrainedLists), "int8 b32 beam4 2t trained lists");
    }

    #[test]
    fn cells_are_chosen_by_words() {
        let filter = CellFilter::from("b1 2t -small");
        assert!(filter.matches("int8 b1 beam1 2t"));
        assert!(filter.matches("int8 b1 beam1 2t avx2"));
        assert!(!filter.matches("int8 b1 beam1 12t"));
        assert!(!filter.matches("small int8 b1 beam1 2t"));
        assert!(CellFilter::default().matches("anything"));
    }

    #[test]
    fn a_group_has_all_types_and_threads_of_one_workload() {
        let groups = groups(random(&[1, 2]));
        assert!(groups.iter().all(|group| group.iter().all(|spec| spec.variant == group[0].variant)));
        assert_eq!(groups[0].len(), 2 * PRECISIONS.len());
        let cells: usize = groups.iter().map(Vec::len).sum();
        assert_eq!(cells, random(&[1, 2]).len());
    }
}
