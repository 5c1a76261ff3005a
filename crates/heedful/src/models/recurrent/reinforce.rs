//! The score-function estimator (REINFORCE) for hard attention (Xu et al., 2015, after Williams, 1992):
//!
//! ```text
//! reward      r_i = log p(y_i | sampled position)
//! baseline    b_i = s w + b, learned: the expected reward, given the state s that the query was computed from
//! ∇           −1/T Σ_i (λ (r_i − b_i) ∇ log α_i(sampled) + β ∇ H(α_i)),    and for the baseline    1/T Σ_i ∇ (b_i − r_i)²
//! ```
//!
//! A sample with a reward above the baseline becomes more probable. The estimate from one sample has a high
//! variance, so λ is small. The entropy bonus H delays the convergence of the attention weights. The reported
//! loss remains the cross entropy; only gradients are added.

use heedful_tensor::ops::{self, Activation, CrossEntropy, IGNORED, LinearOptions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Compute, DType, Init, Param, Params, Tensor};

use super::decoder::AttentionDraws;

/// The learned baseline, and the weights λ (reward) and β (entropy) of the estimator.
pub(super) struct Reinforcement {
    weight: Param,
    bias: Param,
    reward: f32,
    entropy: f32,
}

impl Reinforcement {
    pub(super) fn new(
        params: &Params,
        d: usize,
        vocabulary: usize,
        [reward, entropy]: [f32; 2],
    ) -> Reinforcement {
        // To an untrained model all tokens are equally probable. With any other initial baseline the first
        // gradients would come from the baseline's own error.
        let initial_baseline = -(vocabulary as f32).ln();
        Reinforcement {
            weight: params.add("baseline.weight", d, 1, Init::Constant(0.0)),
            bias: params.add("baseline.bias", 1, 1, Init::Constant(initial_baseline)),
            reward,
            entropy,
        }
    }

    /// Adds the estimator's gradients to a loss, whose value does not change. Tokens with an ignored label
    /// contribute nothing.
    pub(super) fn add_gradients(
        &self,
        mut loss: CrossEntropy,
        draws: &AttentionDraws,
        labels: &[u32],
    ) -> CrossEntropy {
        let share = 1.0 / loss.tokens as f32;
        let rewards = ops::scale(&loss.token_loss_column(), -1.0);
        let device = rewards.device();
        let column = |value: f32| {
            let of = |&label: &u32| if label == IGNORED { 0.0 } else { value };
            Tensor::from_f32_on(device, labels.len(), 1, &labels.iter().map(of).collect::<Vec<_>>())
        };
        let is_counted = column(1.0);
        // In f32: the three digits of bf16 are too few for a difference of rewards.
        let compute = Compute::training(DType::F32);
        let options = LinearOptions { activation: Activation::Identity, dropout: Dropout::NONE, compute };
        let baseline = ops::linear(&draws.query_states, &self.weight, Some(&self.bias), options);
        let advantages = ops::subtract(&rewards, &baseline.detached());
        let reward_factors =
            ops::multiply(&ops::scale(&ops::scale(&advantages, -self.reward), share), &is_counted);
        let factors = ops::concat_columns(&[&reward_factors, &column(-self.entropy * share)]);
        let policy_loss = ops::sum(&ops::multiply(&draws.choices, &factors));
        let error = ops::multiply(&ops::subtract(&baseline, &rewards), &is_counted);
        let baseline_loss = ops::scale(&ops::sum(&ops::multiply(&error, &error)), share);
        let objective = ops::add(&policy_loss, &baseline_loss);
        // Subtracting its detached value leaves only the gradient.
        let gradient_only = ops::subtract(&objective, &objective.detached());
        loss.loss = ops::add(&loss.loss, &gradient_only);
        loss
    }
}
