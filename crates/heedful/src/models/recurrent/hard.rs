//! The score-function estimator (REINFORCE) for hard attention (Xu et al., 2015, after Williams, 1992):
//!
//! ```text
//! reward      r_i = log p(y_i | sampled position)
//! baseline    b_i = s w + b, learned: the expected reward, given the state s that the query was computed from
//! ∇           −1/T Σ_i (λ (r_i − b_i) ∇ log α_i(sampled) + β ∇ H(α_i)),    and for the baseline    1/T Σ_i ∇ (b_i − r_i)²
//! ```
//!
//! A sample that did better than expected becomes more probable. The estimate from one sample has a high variance, so λ is
//! small. The entropy H keeps the weights from converging before they are trained. The reported loss stays the cross
//! entropy; only gradients are added.

use heedful_tensor::ops::{self, Activation, CrossEntropy, IGNORED, LinearOptions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Compute, DType, Init, Param, Params, Tensor};

use super::decoder::AttentionDraws;

/// The baseline and the weights λ and β of the estimator.
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
        // To an untrained model all tokens are equally probable. With any other initial baseline the first gradients
        // would be those of the baseline's own error.
        let guess = -(vocabulary as f32).ln();
        Reinforcement {
            weight: params.add("baseline.weight", d, 1, Init::Constant(0.0)),
            bias: params.add("baseline.bias", 1, 1, Init::Constant(guess)),
            reward,
            entropy,
        }
    }

    /// The same loss, with the estimator's gradients. Tokens that do not count, because their label is ignored, teach nothing.
    pub(super) fn add_gradients(
        &self,
        mut found: CrossEntropy,
        draws: &AttentionDraws,
        labels: &[u32],
    ) -> CrossEntropy {
        let share = 1.0 / found.tokens as f32;
        let rewards = ops::scale(&found.token_loss_column(), -1.0);
        let device = rewards.device();
        let column = |value: f32| {
            let of = |&label: &u32| if label == IGNORED { 0.0 } else { value };
            Tensor::from_f32_on(device, labels.len(), 1, &labels.iter().map(of).collect::<Vec<_>>())
        };
        let counts = column(1.0);
        // In f32: three digits are too few for a difference of rewards.
        let compute = Compute::training(DType::F32);
        let options = LinearOptions { activation: Activation::Identity, dropout: Dropout::NONE, compute };
        let expected = ops::linear(&draws.queried, &self.weight, Some(&self.bias), options);
        let advantages = ops::subtract(&rewards, &expected.detached());
        let of_draws = ops::multiply(&ops::scale(&ops::scale(&advantages, -self.reward), share), &counts);
        let factors = ops::concat_columns(&[&of_draws, &column(-self.entropy * share)]);
        let choices = ops::sum(&ops::multiply(&draws.drawn, &factors));
        let off = ops::multiply(&ops::subtract(&expected, &rewards), &counts);
        let surprise = ops::scale(&ops::sum(&ops::multiply(&off, &off)), share);
        let objective = ops::add(&choices, &surprise);
        // Its value is subtracted, so that only its gradient remains.
        let gradients_alone = ops::subtract(&objective, &objective.detached());
        found.loss = ops::add(&found.loss, &gradients_alone);
        found
    }
}
