use std::ops::ControlFlow;

use heedful_tensor::DType;
use heedful_tensor::collective::in_threads;

use super::*;
use crate::data::batch::Batch;
use crate::layers::NormKind;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::train::{Schedule, StepTrainer, TrainError, TrainerOptions, TrainerState};

const BATCHES: usize = 8;

fn recipe(change: impl FnOnce(&mut Recipe)) -> Recipe {
    let mut recipe = Recipe::default();
    let model = &mut recipe.model;
    (model.d_model, model.d_ff, model.heads) = (16, 32, 2);
    (model.encoder_layers, model.decoder_layers) = (1, 1);
    recipe.training.dropout = 0.2;
    change(&mut recipe);
    recipe
}

fn trainer(model: Box<dyn Model>, team: Team) -> StepTrainer<Box<dyn Model>> {
    StepTrainer::in_team(model, options(), team, RankDevice::Cpu).expect("threads")
}

fn options() -> TrainerOptions {
    let schedule = Schedule::Constant { rate: 1e-2 };
    TrainerOptions { average_decay: Some(0.9), ..TrainerOptions::new(DType::F32, 3, schedule) }
}

/// Batches of different lengths, so that shares differ.
fn batches(step: u64) -> Vec<Batch> {
    let sentence =
        |n: u64| -> Vec<u32> { (0..n % 7 + 1).map(|i| 5 + ((n * 31 + i * 7) % 40) as u32).collect() };
    let batch = |b: u64| {
        let pairs: Vec<_> =
            (0..3).map(|s| (sentence(step + 3 * b + s), sentence(step + b + 5 * s))).collect();
        Batch::new(&pairs, 1, 2).expect("pairs")
    };
    (0..BATCHES as u64).map(batch).collect()
}

/// Trains `steps` with this many ranks, from a state or from scratch; returns the state and the losses.
fn train(
    recipe: &Recipe,
    ranks: usize,
    from: Option<&TrainerState>,
    steps: Range<u64>,
) -> (TrainerState, Vec<f32>) {
    let config = recipe.model_config([50; 2], 2).expect("a model");
    let found = in_threads(ranks, |group| {
        let team = Team::new(group);
        // Followers start with other parameters, which the leader's replace.
        let model = config.build(1 + team.group().rank() as u64).expect("a model");
        if !team.is_leader() {
            let mut trainer = trainer(model, team.clone());
            while execute(&mut trainer, &team).is_continue() {}
            return None;
        }
        let mut trainer = trainer(model, team);
        from.into_iter().for_each(|state| trainer.restore(state).expect("a state of the same model"));
        let losses = steps.clone().map(|step| trainer.step_over(&batches(step)).expect("a good step").loss);
        let losses: Vec<f32> = losses.collect();
        Some((trainer.gathered_state().expect("threads").expect("the leader's"), losses))
    });
    found.into_iter().flatten().next().expect("the leader's")
}

fn execute(trainer: &mut StepTrainer<Box<dyn Model>>, team: &Team) -> ControlFlow<()> {
    match team.next_command().expect("threads") {
        Command::End => ControlFlow::Break(()),
        command => {
            trainer.execute(command).expect("threads");
            ControlFlow::Continue(())
        }
    }
}

fn in_one_process(recipe: &Recipe, steps: Range<u64>) -> (TrainerState, Vec<f32>) {
    let model = recipe.model_config([50; 2], 2).expect("a model").build(1).expect("a model");
    let mut trainer = StepTrainer::new(model, options());
    let losses = steps.map(|step| trainer.step_over(&batches(step)).expect("a good step").loss).collect();
    (trainer.state(), losses)
}

#[test]
fn weights_and_losses_have_the_same_bits_on_any_number_of_ranks() {
    let changes: [fn(&mut Recipe); 2] = [|_| {}, |recipe| recipe.model.norm_kind = NormKind::Batch];
    for change in changes {
        let recipe = recipe(change);
        let expected = in_one_process(&recipe, 0..6);
        for ranks in [1, 2, 4, 8] {
            let found = train(&recipe, ranks, None, 0..6);
            assert!(found == expected, "{ranks} ranks");
        }
    }
}

#[test]
fn a_run_continues_with_another_number_of_ranks() {
    let recipe = recipe(|_| {});
    let expected = in_one_process(&recipe, 0..6);
    let (middle, _) = train(&recipe, 4, None, 0..3);
    let found = train(&recipe, 2, Some(&middle), 3..6);
    assert!(found.0 == expected.0);
    assert_eq!(found.1, expected.1[3..]);
}

#[test]
fn a_rejected_step_leaves_all_ranks_as_they_were() {
    let recipe = recipe(|_| {});
    let config = recipe.model_config([50; 2], 2).expect("a model");
    let (before, _) = in_one_process(&recipe, 0..3);
    let mut broken = before.clone();
    broken.parameters = crate::store::weights::Weights::from_matrices(
        before.parameters.iter().map(|(name, shape, _)| (name.to_owned(), shape)),
        before.parameters.iter().flat_map(|(.., values)| values.iter().map(|_| f32::NAN)).collect(),
    );
    let states = in_threads(2, |group| {
        let team = Team::new(group);
        let model = config.build(1).expect("a model");
        let mut trainer = trainer(model, team.clone());
        if !team.is_leader() {
            while execute(&mut trainer, &team).is_continue() {}
            return None;
        }
        trainer.restore(&broken).expect("the same shapes");
        let error = trainer.step_over(&batches(3)).expect_err("it diverges");
        assert!(matches!(error, TrainError::Diverged { step: 4, .. }), "{error}");
        trainer.restore(&before).expect("its own state");
        Some(trainer.gathered_state().expect("threads").expect("the leader's"))
    });
    assert!(states.into_iter().flatten().next() == Some(before));
}

#[test]
fn rank_counts_that_would_change_the_summation_order_are_rejected_with_valid_ones() {
    let refusal = |batches, ranks| NotDivisible { batches, ranks }.to_string();
    assert!(refusal(8, 3).ends_with("start 1 or 2 or 4 or 8 of them, or choose another --accumulate"));
    assert!(refusal(6, 4).contains("start 1 or 2 of them"), "{}", refusal(6, 4));
    assert!(
        refusal(1, 2).starts_with("1 batch of a step (training.accumulate) cannot be divided among 2 ranks")
    );
}
