//! Top k among all columns and among chosen columns. A separate test binary, because it changes the
//! instruction set.

use heedful_tensor::cpu::isa;
use heedful_tensor::ops::{
    ChosenColumns, ChosenGroup, Normalizers, Projection, TopK, project_chosen, project_f32_out,
};
use heedful_tensor::random::Stream;
use heedful_tensor::{Channels, Compute, Init, Params, Precision, Rounding, Tensor};

const WIDTH: usize = 1300;
const K: usize = 70;
/// k: larger than some of the lists.
const COUNT: usize = 6;

/// Lists of a few columns, and one that is longer than a summation segment.
fn lists() -> Vec<Vec<u32>> {
    let long = (0..WIDTH as u32).filter(|column| column % 7 != 3).collect();
    vec![vec![2, 3, 40, 700, 1299], vec![0], vec![5, 6, 7, 8, 9, 10], vec![1], long]
}

/// Number of rows of each list.
const HEIGHTS: [usize; 5] = [4, 1, 40, 0, 3];

#[test]
fn top_k_is_the_head_of_the_sorted_row() {
    let stream = Stream::new(3, 4, 5);
    isa::with_each(|isa| {
        for (width, count) in [(1, 1), (5, 9), (64, 3), (65, 64), (1000, 1), (1003, 7), (8000, 10)] {
            // Few distinct values: many ties.
            let values: Vec<f32> =
                (0..3 * width as u32).map(|i| (stream.bits(i) % 400) as f32 * 0.01).collect();
            let mut found = TopK::default();
            found.find(&Tensor::from_f32(3, width, &values), count, Rounding::Fused);
            for (row, values) in values.chunks_exact(width).enumerate() {
                let mut order: Vec<usize> = (0..width).collect();
                order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
                order.truncate(count);
                let best: Vec<usize> = found.best(row).iter().map(|best| best.index as usize).collect();
                assert_eq!(best, order, "{isa}: {count} of {width}");
                let exact = values.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                assert!((found.normalizer(row) - exact).abs() < 1e-5);
            }
        }
    });
}

#[test]
fn chosen_columns_have_the_same_scores_as_in_the_full_projection() {
    let params = Params::new(3);
    let weight = params.add_weight("weight", [WIDTH, K], Init::Normal(1.0), Channels::Rows);
    let bias = params.add("bias", 1, WIDTH, Init::Normal(1.0));
    let (stream, rows) = (Stream::new(5, 6, 7), HEIGHTS.iter().sum());
    let values: Vec<f32> = (0..(rows * K) as u32).map(|i| stream.uniform(i) - 0.5).collect();
    let x = Tensor::from_f32(rows, K, &values);
    isa::with_each(|isa| {
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let compute = Compute::inference(precision);
            for bias in [None, Some(&bias)] {
                let projection = Projection { weight: &weight, bias };
                let mut chosen = ChosenColumns::new(projection, compute);
                chosen.add(lists().into_iter().enumerate().collect());
                check(&x, &project_f32_out(&x, projection, compute), &chosen, precision, &isa.to_string());
            }
        }
    });
}

fn check(x: &Tensor, all: &Tensor, chosen: &ChosenColumns<'_>, precision: Precision, isa: &str) {
    let groups = groups((0..5).zip(HEIGHTS));
    let mut found = TopK::default();
    let extra = [(5, 1299), (0, 3), (0, 4), (5, 9)];
    found.find_in_chosen(x, chosen, &groups, COUNT, &extra, precision.rounding());
    let spread = project_chosen(x, chosen, &groups);
    for ChosenGroup { rows, list } in &groups {
        let columns = &lists()[*list];
        for row in rows.clone() {
            let name = format!("{isa} {precision} row {row}");
            check_row(&found, row, &all.row(row), columns, precision, &name);
            for (column, score) in spread.row(row).iter().enumerate() {
                let is_chosen = columns.binary_search(&(column as u32)).is_ok();
                let expected = if is_chosen { all.row(row)[column] } else { f32::NEG_INFINITY };
                assert_eq!(score.to_bits(), expected.to_bits(), "{name} column {column}");
            }
        }
    }
    assert_eq!(found.extra(0, 3), Some(all.row(0)[3]));
    assert_eq!(found.extra(5, 9), Some(all.row(5)[9]));
    assert_eq!([found.extra(0, 4), found.extra(5, 1299)], [Some(f32::NEG_INFINITY); 2]);
    assert_eq!(found.extra(1, 3), None);
}

/// Groups of lists with these numbers and numbers of rows.
fn groups(heights: impl Iterator<Item = (usize, usize)>) -> Vec<ChosenGroup> {
    let mut end = 0;
    let group = |(list, height)| {
        end += height;
        ChosenGroup { rows: end - height..end, list }
    };
    heights.map(group).collect()
}

/// Checks that a row's results are those of a row with the scores of its columns only.
fn check_row(found: &TopK, row: usize, all: &[f32], columns: &[u32], precision: Precision, name: &str) {
    let scores: Vec<f32> = columns.iter().map(|&column| all[column as usize]).collect();
    let mut alone = TopK::default();
    alone.find(&Tensor::from_f32(1, scores.len(), &scores), COUNT, precision.rounding());
    assert_eq!(found.normalizer(row).to_bits(), alone.normalizer(0).to_bits(), "{name}");
    for (rank, best) in found.best(row).iter().enumerate() {
        match alone.best(0).get(rank) {
            Some(expected) => {
                assert_eq!(best.score.to_bits(), expected.score.to_bits(), "{name}");
                assert_eq!(best.index, columns[expected.index as usize], "{name}");
            }
            None => assert_eq!(best.score, f32::NEG_INFINITY, "{name}"),
        }
    }
}

#[test]
fn lists_that_come_and_go_do_not_change_each_others_scores() {
    let params = Params::new(3);
    let weight = params.add_weight("weight", [WIDTH, K], Init::Normal(1.0), Channels::Rows);
    let stream = Stream::new(5, 6, 10);
    let values: Vec<f32> = (0..(60 * K) as u32).map(|i| stream.uniform(i) - 0.5).collect();
    let x = Tensor::from_f32(60, K, &values);
    // Frequent columns in all lists, others in every third, and some of a list's own.
    let list_of = |number: u32| {
        let mut list: Vec<u32> = (0..40).map(|i| i * 31).collect();
        list.extend((0..50).map(|i| (i * 17 + number % 3 * 401) % WIDTH as u32));
        list.extend((0..number * 5 % 60).map(|i| stream.bits(1000 * number + i) % WIDTH as u32));
        list.sort_unstable();
        list.dedup();
        list
    };
    isa::with_each(|isa| {
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let compute = Compute::inference(precision);
            let (all, mut found) = (project_f32_out(&x, &weight, compute), TopK::default());
            let mut chosen = ChosenColumns::new(&weight, compute);
            let mut open: Vec<u32> = Vec::new();
            for turn in 0..12 {
                let first = turn * 3;
                let newcomers = first..first + 1 + turn % 3;
                chosen.add(newcomers.clone().map(|number| (number as usize, list_of(number))).collect());
                open.extend(newcomers);
                let has_left = |number: u32| stream.bits(50 * turn + number).is_multiple_of(4);
                open.retain(|&number| !has_left(number));
                chosen.retain(|number| !has_left(number as u32));
                assert_eq!(chosen.is_empty(), open.is_empty());
                let heights = open.iter().map(|&number| (number as usize, 1 + number as usize % 4));
                let groups = groups(heights);
                let rows = groups.last().map_or(0, |group| group.rows.end);
                let x = Tensor::from_f32(rows, K, &values[..rows * K]);
                found.find_in_chosen(&x, &chosen, &groups, COUNT, &[], precision.rounding());
                for ChosenGroup { rows, list } in &groups {
                    for row in rows.clone() {
                        let name = format!("{isa} {precision} turn {turn} row {row}");
                        check_row(&found, row, &all.row(row), &list_of(*list as u32), precision, &name);
                    }
                }
            }
        }
    });
}

#[test]
fn top_k_of_a_product_equals_top_k_of_its_scores_with_and_without_bias() {
    let params = Params::new(3);
    let weight = params.add_weight("weight", [WIDTH, K], Init::Normal(1.0), Channels::Rows);
    let bias = params.add("bias", 1, WIDTH, Init::Normal(1.0));
    let stream = Stream::new(5, 6, 8);
    let values: Vec<f32> = (0..(40 * K) as u32).map(|i| stream.uniform(i) - 0.5).collect();
    let x = Tensor::from_f32(40, K, &values);
    isa::with_each(|isa| {
        for bias in [None, Some(&bias)] {
            let (projection, compute) =
                (Projection { weight: &weight, bias }, Compute::inference(Precision::Int8));
            let scores = project_f32_out(&x, projection, compute);
            let (mut found, mut expected) = (TopK::default(), TopK::default());
            assert!(found.find_in_product(&x, projection, compute, COUNT, &[(3, 1299), (39, 0)]));
            expected.find(&scores, COUNT, Precision::Int8.rounding());
            for row in 0..40 {
                assert_eq!(found.best(row), expected.best(row), "{isa} row {row}");
                assert_eq!(
                    found.normalizer(row).to_bits(),
                    expected.normalizer(row).to_bits(),
                    "{isa} row {row}"
                );
            }
            let others = [(3, 1299), (39, 0)].map(|(row, column)| found.extra(row, column));
            assert_eq!(others, [Some(scores.row(3)[1299]), Some(scores.row(39)[0])], "{isa}");
        }
    });
}

#[test]
fn scores_that_grow_within_a_row_are_summed_without_overflow() {
    let rows: Vec<Vec<f32>> = vec![
        (0..1300).map(|i| i as f32 * 0.7 - 500.0).collect(),
        (0..1300).map(|i| if i == 1100 { 900.0 } else { -900.0 + (i % 7) as f32 }).collect(),
        (0..1300).map(|i| if i % 600 == 40 { 59.0 } else { f32::NEG_INFINITY }).collect(),
        (0..1300).map(|i| if i < 40 { f32::NEG_INFINITY } else { -3e4 }).collect(),
    ];
    let scores = Tensor::from_f32(4, 1300, &rows.concat());
    let mut bits = Vec::new();
    isa::with_each(|isa| {
        let mut found = TopK::default();
        found.find(&scores, 3, Rounding::Uniform);
        for (row, values) in rows.iter().enumerate() {
            let top = f64::from(values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let exact = top + values.iter().map(|&x| (f64::from(x) - top).exp()).sum::<f64>().ln();
            let distance = (found.normalizer(row) - exact).abs();
            assert!(distance < 1e-5, "{isa} row {row}: {} is not {exact}", found.normalizer(row));
        }
        bits.push([0, 1, 2, 3].map(|row| found.normalizer(row).to_bits()));
    });
    assert!(
        bits.iter().all(|bits_of_isa| *bits_of_isa == bits[0]),
        "every instruction set has the same bits"
    );
}

#[test]
fn without_normalizers_the_best_are_the_same_and_broken_rows_are_found() {
    let weight = Params::new(3).add_weight("weight", [WIDTH, K], Init::Normal(1.0), Channels::Rows);
    let stream = Stream::new(5, 6, 9);
    let mut values: Vec<f32> = (0..(40 * K) as u32).map(|i| stream.uniform(i) - 0.5).collect();
    (values[K + 3], values[39 * K]) = (f32::NAN, f32::INFINITY);
    let x = Tensor::from_f32(40, K, &values);
    isa::with_each(|isa| {
        for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let compute = Compute::inference(precision);
            let scores = project_f32_out(&x, &weight, compute);
            for count in [1, COUNT] {
                let (mut with, mut without) = (TopK::default(), TopK::default());
                without.request_normalizers(Normalizers::Skipped);
                for found in [&mut with, &mut without] {
                    if !found.find_in_product(&x, &weight, compute, count, &[(2, 5)]) {
                        found.find_with_extra(&scores, count, &[(2, 5)], precision.rounding());
                    }
                }
                for row in 0..40 {
                    let is_broken = row == 1 || row == 39;
                    assert_eq!(with.normalizer(row).is_finite(), !is_broken, "{isa} {precision} row {row}");
                    assert_eq!(
                        without.normalizer(row).is_finite(),
                        !is_broken,
                        "{isa} {precision} row {row}"
                    );
                    if !is_broken {
                        assert_eq!(with.best(row), without.best(row), "{isa} {precision} row {row}");
                    }
                }
                assert_eq!(with.extra(2, 5), without.extra(2, 5));
            }
        }
    });
}

#[test]
#[should_panic(expected = "groups of 2 rows, x is [3, 8]")]
fn rows_without_columns_are_an_error() {
    let weight = Params::new(3).add_weight("weight", [9, 8], Init::Normal(1.0), Channels::Rows);
    let mut chosen = ChosenColumns::new(&weight, Compute::inference(Precision::F32));
    chosen.add(vec![(7, vec![1, 2])]);
    project_chosen(&Tensor::from_f32(3, 8, &[0.0; 24]), &chosen, &[ChosenGroup { rows: 0..2, list: 7 }]);
}
