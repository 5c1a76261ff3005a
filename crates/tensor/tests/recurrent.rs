//! Recurrent layers: batching changes no bit, single steps equal the whole layer, and memory is reused.

use std::sync::{Mutex, MutexGuard, PoisonError};

use heedful_tensor::cpu::{isa, memory, threads};
use heedful_tensor::ops::*;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, Compute, DType, Device, Init, Param, Params, Ragged, Tensor, tape};

const D: usize = 36;
const CELLS: [Cell; 3] = [Cell::Simple, Cell::Gru, Cell::Lstm];

/// Instruction set, threads and memory pool are process-wide, so the tests run one at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Layer {
    cell: Cell,
    weight: Param,
    bias: Param,
}

impl Layer {
    fn new(cell: Cell) -> Layer {
        let params = Params::new(7);
        let weight = params.add("weight", D, cell.gates() * D, Init::Xavier);
        Layer { cell, weight, bias: params.add("bias", 1, cell.gates() * D, Init::Normal(0.1)) }
    }

    fn run(&self, x: &Tensor, sequences: &Ragged, direction: Direction, compute: DType) -> Recurrent {
        let options = RecurrentOptions { cell: self.cell, direction, compute: Compute::training(compute) };
        recurrent(x, sequences, None, &self.weight, Some(&self.bias), options)
    }
}

fn inputs(cell: Cell, tokens: usize) -> Vec<f32> {
    let draws = Stream::new(1, 2, 3);
    (0..(tokens * cell.gates() * D) as u32).map(|i| draws.normal(i)).collect()
}

#[test]
fn a_sequence_has_the_same_bits_alone_and_in_a_batch() {
    let _lock = exclusive();
    let batch = Ragged::from_lengths([3, 50, 1, 17, 20, 17, 2, 9]);
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for cell in CELLS {
            let (layer, width) = (Layer::new(cell), cell.gates() * D);
            let values = inputs(cell, batch.tokens());
            for compute in [DType::F32, DType::Bf16] {
                for direction in [Direction::Forward, Direction::Backward] {
                    let run = |range: std::ops::Range<usize>, sequences: &Ragged| {
                        let x = &values[range.start * width..range.end * width];
                        let x = Tensor::from_f32(range.len(), width, x);
                        tape::no_grad(|| layer.run(&x, sequences, direction, compute))
                    };
                    let together = run(0..batch.tokens(), &batch);
                    let (outputs, last) = (together.outputs.to_vec(), together.last.h.to_vec());
                    for (i, range) in batch.ranges().enumerate() {
                        let alone = run(range.clone(), &Ragged::from_lengths([range.len()]));
                        let case = format!("{cell:?} {direction:?} on {isa} in {compute}, sequence {i}");
                        assert!(alone.outputs.to_vec() == outputs[range.start * D..range.end * D], "{case}");
                        assert!(alone.last.h.to_vec() == last[i * D..(i + 1) * D], "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn single_steps_equal_the_whole_layer() {
    let _lock = exclusive();
    let (rows, steps) = (5, 4);
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for cell in CELLS {
            let (layer, width) = (Layer::new(cell), cell.gates() * D);
            let x = Tensor::from_f32(rows * steps, width, &inputs(cell, rows * steps));
            for compute in [DType::F32, DType::Bf16] {
                let sequences = Ragged::from_lengths([steps; 5]);
                let whole = tape::no_grad(|| layer.run(&x, &sequences, Direction::Forward, compute));
                let mut state = RecurrentState::zeros(Device::Cpu, cell, rows, D);
                for step in 0..steps {
                    let tokens: Vec<usize> = (0..rows).map(|row| row * steps + step).collect();
                    let x = gather_rows(&x, &tokens);
                    state = recurrent_step(
                        &x,
                        &state,
                        &layer.weight,
                        Some(&layer.bias),
                        cell,
                        Compute::inference(compute),
                    );
                    let expected = gather_rows(&whole.outputs, &tokens).to_vec();
                    assert!(state.h.to_vec() == expected, "{cell:?} on {isa} in {compute}, step {step}");
                }
                let c = |state: &RecurrentState| state.c.as_ref().map(Tensor::to_vec);
                assert!(c(&state) == c(&whole.last), "{cell:?} on {isa} in {compute}");
            }
        }
    }
}

#[test]
fn an_empty_sequence_keeps_its_initial_state() {
    let _lock = exclusive();
    let layer = Layer::new(Cell::Lstm);
    let state = || Tensor::variable(Array::from_f32(2, D, &[0.25; 2 * D]));
    let initial = RecurrentState { h: state(), c: Some(state()) };
    let x = Tensor::from_f32(3, 4 * D, &inputs(Cell::Lstm, 3));
    let options = RecurrentOptions {
        cell: Cell::Lstm,
        direction: Direction::Forward,
        compute: Compute::training(DType::F32),
    };
    let sequences = Ragged::from_lengths([0, 3]);
    let last = recurrent(&x, &sequences, Some(&initial), &layer.weight, None, options).last;
    assert_eq!(last.h.to_vec()[..D], [0.25; D]);
    let gradients = tape::backward(&sum(&last.h));
    let of = |state: &Tensor| gradients.of(state).expect("a gradient").f32().to_vec();
    assert_eq!(of(&initial.h)[..D], [1.0; D]);
    assert_eq!(of(initial.c.as_ref().expect("c"))[..D], [0.0; D]);
}

#[test]
fn passes_allocate_nothing_from_the_third_on() {
    let _lock = exclusive();
    for count in [1, 2] {
        threads::set_thread_count(count);
        for compute in [DType::F32, DType::Bf16] {
            for cell in CELLS {
                let layer = Layer::new(cell);
                let sequences = Ragged::from_lengths([30, 4, 17, 9, 9, 40, 1]);
                let values = inputs(cell, sequences.tokens());
                let pass = || {
                    let x = Array::from_f32(sequences.tokens(), cell.gates() * D, &values);
                    let found = layer.run(&Tensor::variable(x), &sequences, Direction::Backward, compute);
                    tape::backward(&add(&sum(&found.outputs), &sum(&found.last.h)));
                };
                pass();
                pass();
                let before = memory::bytes_from_system();
                (0..5).for_each(|_| pass());
                assert_eq!(memory::bytes_from_system(), before, "{cell:?} in {compute} with {count} threads");
            }
        }
    }
}
